"""The steps of a hooked program: recorded one by one, ended and profiled as a trial plans."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Optional  # noqa: UP035 (Python 3.8 subscripts no other)

from launch.rank.commands import Commands
from launch.rank.hooks.agreement import Agreement
from launch.rank.hooks.memory import device_of, peaks
from launch.rank.profile_options import ProfileOptions
from launch.rank.profiling import StepProfiler
from launch.rank.recorder import Recorder

PLAN_VARIABLE = "AUTOTUNE_HOOK_PLAN"
"""JSON: `steps` (plain ones, at most), `profile` (options or null), `agree` (one host)."""


class HookedSteps:
    """What the hook of a program tells of its steps, on one rank.

    Steps are counted from 1 as they end, whatever the program calls them.
    """

    def __init__(self, recorder: Recorder, plan: Dict[str, Any]) -> None:  # noqa: UP006
        self._recorder = recorder
        self._rank = int(os.environ.get("RANK", "0"))
        self._world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self._plain = int(plan.get("steps", sys.maxsize))
        planned = plan.get("profile")
        self._planned = None if planned is None else ProfileOptions.from_mapping(planned)
        self._made = 0
        self._profiled_until = 0
        self._is_closing = False  # the planned profile, after which nothing comes, has begun
        self._profiler: Optional[StepProfiler] = None  # noqa: UP045
        self._agreement: Optional[Agreement] = None  # noqa: UP045
        if plan.get("agree") and recorder.folder is not None:
            commands = Commands(recorder.folder, recorder)
            self._agreement = Agreement(recorder.folder, self._rank, commands)

    @classmethod
    def from_environment(cls) -> HookedSteps:
        """As the launcher planned it; outside a trial nothing is recorded or ended."""
        plan = json.loads(os.environ.get(PLAN_VARIABLE, "{}"))
        return cls(Recorder.from_environment(), plan)

    def begin(self) -> None:
        """The program is about to make its first step."""
        torch = sys.modules.get("torch")
        version = str(getattr(torch, "__version__", ""))
        device = device_of()
        self._recorder.start(self._rank, self._world_size, device, version)
        self._profiler = StepProfiler(device, self._rank, self._world_size, self._recorder)

    def made(self, time_s: float, **details: Any) -> bool:
        """A step was made, in seconds; whether it was the last that the program is to make.

        details: further fields of the step's record.
        """
        self._made += 1
        profiled = self._made <= self._profiled_until
        record = {"step": self._made, "time_s": time_s, "profiled": profiled, **peaks(), **details}
        self._recorder.step(record)
        if self._agreement is not None:
            self._agreement.look(self._made)
        if profiled and self._profiler is not None:
            if self._made < self._profiled_until:
                self._profiler.next(self._made + 1)
                return False
            self._profiler.stop()
        return self._go_on()

    def _go_on(self) -> bool:
        """Opens a profile where one is due; True where nothing is left to do."""
        agreed = self._agreement
        last = self._plain
        if agreed is not None:
            is_due = agreed.profile_after is not None and self._made >= agreed.profile_after
            if is_due and not self._is_closing:
                agreed.profile_after = None
                self._open(agreed.options, agreed.request)
                return False
            if agreed.finish_after is not None:
                last = min(last, agreed.finish_after)
        if self._made < last:
            return False
        if self._planned is None:
            self._refuse_late_request()
            return True
        planned, self._planned, self._is_closing = self._planned, None, True
        self._open(planned, None)
        return False

    def _refuse_late_request(self) -> None:
        agreed = self._agreement
        if agreed is not None and agreed.profile_after is not None and self._rank == 0:
            self._recorder.profile_failed(agreed.request, "no steps are left to profile")

    def _open(self, options: ProfileOptions, request: Optional[str]) -> None:  # noqa: UP045
        self._profiled_until = self._made + options.total_steps
        if self._profiler is not None:
            self._profiler.start(options, self._made + 1, request)

    def end(self) -> None:
        """The program's script ended by itself."""
        self._recorder.end()

    def failed(self, error: BaseException) -> None:
        """The program's script ended with an exception."""
        kind = "oom" if _is_out_of_memory(error) else "exception"
        held = peaks() if "torch" in sys.modules else {}
        self._recorder.error(kind, f"{type(error).__name__}: {error}", **held)


def _is_out_of_memory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()
