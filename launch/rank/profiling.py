"""Starts and stops a profiler around a rank's steps.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on, and the torch
or torch_npu that the trainer has loaded.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any, Callable  # noqa: UP035 (Python 3.8 subscripts no other)

from launch.rank.ascend_profile import AscendProfile
from launch.rank.commands import PROFILE_FOLDER
from launch.rank.kineto_profile import KinetoProfile
from launch.rank.profile_options import ProfileOptions
from launch.rank.recorder import Recorder

# What profilers raise, which must not end a trial: the C++ side RuntimeError (a profiler that
# runs already, a device that refuses), writing OSError (a full disk), and options that a
# version of torch or torch_npu lacks the others. Only calls of a profiler are guarded.
_PROFILER_ERRORS = (
    RuntimeError,
    OSError,
    TypeError,
    ValueError,
    AttributeError,
    ImportError,
    AssertionError,
)


class StepProfiler:
    """Collects profiles of whole steps of this rank into the trial's folder.

    Every failure becomes an error record, and the steps go on without a profiler.
    """

    def __init__(self, device: str, rank: int, world_size: int, recorder: Recorder) -> None:
        self._device = device
        self._rank = rank
        self._world_size = world_size
        self._recorder = recorder
        self._profile: Any = None
        self._request: str | None = None
        self._steps: list[int] = []

    @property
    def is_running(self) -> bool:
        """Whether a profiler runs on this rank."""
        return self._profile is not None

    def start(self, options: ProfileOptions, step: int, request: str | None = None) -> None:
        """Starts before `step`, the first under the profiler, where this rank collects.

        request: the id of the request that asks for it.
        """
        self._request = request
        if self._rank == 0 and not any(map(options.collects, range(self._world_size))):
            last = self._world_size - 1
            self._fail(f"ranks {list(options.ranks)} are none of this trial's, 0 to {last}")
        if self._recorder.folder is None or not options.collects(self._rank):
            return
        first = step + options.warmup_steps
        self._steps = list(range(first, first + options.steps))
        folder = self._recorder.folder / PROFILE_FOLDER
        self._guarded(lambda: self._open(folder, options, step))

    def next(self, step: int) -> None:
        """Goes on from one step to `step`."""
        if self._profile is not None:
            profile = self._profile
            self._guarded(lambda: profile.next(step))

    def stop(self) -> None:
        """Ends after the last step; the profile is written when it returns."""
        if self._profile is not None:
            self._guarded(self._close)

    def _open(self, folder: Path, options: ProfileOptions, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._profile = _profile(self._device, folder, self._rank, options)
        self._profile.start(step)

    def _close(self) -> None:
        path = self._profile.stop()
        self._profile = None
        assert self._recorder.folder is not None
        relative = path.relative_to(self._recorder.folder).as_posix()
        self._recorder.profile(self._request, relative, self._steps, _size(path))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except _PROFILER_ERRORS as error:
            self._fail(f"{type(error).__name__}: {error}")
            self._abandon()

    def _abandon(self) -> None:
        profile, self._profile = self._profile, None
        if profile is not None:
            try:
                profile.abandon()
            except _PROFILER_ERRORS:
                return  # it has not even started, or is over; the failure is recorded

    def _fail(self, message: str) -> None:
        self._recorder.profile_failed(self._request, message)


def _profile(
    device: str, folder: Path, rank: int, options: ProfileOptions
) -> AscendProfile | KinetoProfile:
    """The profiler for a device. Raises RuntimeError when its library is not loaded."""
    host = platform.node() or "host"
    name = "torch_npu" if device == "npu" else "torch"
    library = sys.modules.get(name)
    if library is None:
        raise RuntimeError(f"the trainer has not loaded {name}, whose profiler was asked for")
    if device == "npu":
        # torch_npu adds the process and the time.
        return AscendProfile(library, folder, f"{host}_rank{rank}", options)
    return KinetoProfile(library, device, folder, f"{host}_{os.getpid()}.rank{rank}", options)


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(file.stat().st_size for file in files)
