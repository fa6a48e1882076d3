"""The steps of a trace: from `ProfilerStep#n` ranges, else the whole trace."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.analyze.intervals import Interval
from autotune.analyze.kineto.events import HostCall, Recording
from autotune.measure.records import PHASES

_STEP = re.compile(r"ProfilerStep#(\d+)")
DATA_LOADER = "enumerate(DataLoader)#"
OPTIMIZER_STEP = "Optimizer.step#"


@dataclass(frozen=True)
class Window:
    """A step. number: None where the whole trace stands for one step.

    host: when the host was in it. start, end: its time, see `device_windows`.
    """

    number: int | None
    host: Interval
    start: int
    end: int


def main_thread(recording: Recording) -> str:
    """The thread that trains: with the steps, else with ranges of the phases, else the busiest."""
    ranges = recording.ranges
    for is_sign in (_is_step, _is_phase):
        signs = {thread: sum(map(is_sign, calls)) for thread, calls in ranges.items()}
        if any(signs.values()):
            return max(signs, key=lambda thread: signs[thread])
    busy = {
        thread: sum(call.end - call.start for call in calls)
        for thread, calls in recording.operators.items()
    }
    return max(busy, key=lambda thread: busy[thread], default="")


def step_windows(recording: Recording, thread: str) -> tuple[Window, ...]:
    """The steps on the host by time; without marks one over all that was recorded.

    None where a device was at work that was not recorded.
    """
    if not recording.is_host_only and not recording.tasks:
        return ()
    windows = []
    for call in recording.ranges.get(thread, ()):
        number = step_number(call.name)
        if number is not None and call.end > call.start:
            windows.append(Window(number, (call.start, call.end), call.start, call.end))
    span = recording.span
    if windows or span is None or span[0] == span[1]:
        return tuple(windows)
    return (Window(None, span, *span),)


def device_windows(windows: Sequence[Window], recording: Recording) -> tuple[Window, ...]:
    """The steps, each from the end of the one before until its work is done on the device too.

    The host may run ahead of the device by whole steps: its ranges alone would then say that a
    step takes as long as launching it.
    """
    if recording.is_host_only:
        return tuple(windows)
    launches = sorted((launch.at, cause) for cause, launch in recording.launches.items())
    ends: dict[int, int] = {}
    for task in recording.tasks:
        ends[task.correlation] = max(task.end, ends.get(task.correlation, 0))
    settled: list[Window] = []
    free_from = 0
    for window in windows:
        first, last = (bisect_left(launches, (moment,)) for moment in window.host)
        start = max(window.start, free_from)
        end = max([window.end, start, *(ends.get(cause, 0) for _, cause in launches[first:last])])
        settled.append(replace(window, start=start, end=end))
        free_from = end
    return tuple(settled)


def step_of(windows: Sequence[Window], at: int) -> int | None:
    """The number of the step in which a moment lies, None outside of all."""
    position = bisect_right(windows, at, key=lambda window: window.start) - 1
    if position < 0 or at >= windows[position].end:
        return None
    return windows[position].number


def step_number(name: str) -> int | None:
    """The number in `ProfilerStep#<number>`, None for another range."""
    match = _STEP.fullmatch(name)
    return int(match.group(1)) if match else None


def _is_step(call: HostCall) -> bool:
    return step_number(call.name) is not None


def _is_phase(call: HostCall) -> bool:
    return call.name.startswith((DATA_LOADER, OPTIMIZER_STEP)) or call.name in PHASES
