"""Files of a trial that outlive its processes: shared-memory segments, and locks of builds.

A process that is killed leaves them. A segment holds memory until the host starts anew, and a
build's lock stops every later one that waits for it (`torch/utils/file_baton.py`: a file named
`lock`, open as long as its maker lives). What the trial's processes have open is noted while they
run, and removed when they are gone, unless it was there before, or anyone still has it open.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where segments are, not a place that we write to
_PROC = Path("/proc")
_LOCK = "lock"
_MAPPED = re.compile(r"\s(/dev/shm/.*)$")
_DELETED = " (deleted)"
_CLOCK_STEP_S = 1.0  # between the clocks of a file system and of this process


class Leftovers:
    """What a trial's processes have open of that kind.

    file: where the list is kept, for who cleans up when this process is killed too. since: wall
    clock in seconds; what is older is not the trial's.
    """

    def __init__(self, file: Path, since: float) -> None:
        self._file = file
        self._since = since - _CLOCK_STEP_S
        self._seen: set[Path] = set()

    def look(self, pids: Iterable[int]) -> None:
        """Notes what the processes have open now."""
        found = {path for pid in pids for path in _open_files(pid) if self._is_ours(path)}
        if not found <= self._seen:
            self._seen |= found
            noted = {"host": socket.gethostname(), "paths": sorted(map(str, self._seen))}
            self._file.write_text(json.dumps(noted), encoding="utf-8")

    def remove(self) -> list[Path]:
        """Removes what is left and nobody uses; the trial's processes are gone."""
        removed = remove_unused(self._seen)
        self._file.unlink(missing_ok=True)
        return removed

    def _is_ours(self, path: Path) -> bool:
        try:
            return path in self._seen or path.stat().st_ctime >= self._since
        except OSError:
            return False


def remove_noted(file: Path) -> list[Path]:
    """Removes what `Leftovers` noted in a file, where its process did not live to do it.

    What was noted on another host is left for that one.
    """
    try:
        noted = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if noted["host"] != socket.gethostname():
        return []
    removed = remove_unused(Path(path) for path in noted["paths"])
    file.unlink(missing_ok=True)
    return removed


def remove_unused(paths: Iterable[Path]) -> list[Path]:
    """Removes those of the files that no living process has open or mapped."""
    left = {path for path in paths if path.exists()}
    if not left:
        return []
    used = {path for pid in _all_pids() for path in _open_files(pid)}
    removed = []
    for path in sorted(left - used):
        with contextlib.suppress(OSError):  # somebody else was faster, or it is not ours to remove
            path.unlink()
            removed.append(path)
    return removed


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]


def _open_files(pid: int) -> Iterator[Path]:
    """Segments and locks that a process has open or mapped; none of one that is gone."""
    yield from filter(_is_wanted, _descriptors(pid))
    yield from filter(_is_wanted, _mappings(pid))


def _descriptors(pid: int) -> Iterator[Path]:
    try:
        entries = list((_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            yield entry.readlink()


def _mappings(pid: int) -> Iterator[Path]:
    with (
        contextlib.suppress(OSError),
        (_PROC / str(pid) / "maps").open(encoding="utf-8", errors="surrogateescape") as lines,
    ):
        for line in lines:
            mapped = _MAPPED.search(line)
            if mapped is not None:
                yield Path(mapped[1])


def _is_wanted(path: Path) -> bool:
    if path.name.endswith(_DELETED):
        return False
    return path.is_relative_to(SHARED_MEMORY) or (path.name == _LOCK and path.is_absolute())
