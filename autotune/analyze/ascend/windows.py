"""Which stretch of the device's time belongs to which step.

torch_npu's rule (2.13, `_fwk_cann_relation_parser`): the host runs ahead of the device, so a
step begins on the device with the first kernel that it launched, and ends with the end of the
last one, or of the step on the host where that is later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from autotune.analyze.ascend.timeline import Call, Host, HostStep, Task, Window

# A profile without steps is one window without end.
_FOREVER = 1 << 62


def windows_of(
    host: Host, launches: Sequence[tuple[int, int]], ends: Mapping[int, int]
) -> tuple[Window, ...]:
    """The windows of the host's steps, in order; one without a step where there are none.

    launches: when the host launched what started when on the device. ends: when what starts
    at a moment ends. A step that launched nothing has no window, as it has no row in
    step_trace_time.csv. Where nothing is linked at all, the host's clock has to do.
    """
    if not host.steps:
        return (Window(None, -_FOREVER, _FOREVER),)
    if not launches:
        return tuple(Window(step, step.start, step.end) for step in host.steps)
    ordered = sorted(launches)
    found = (_window(step, ordered, ends) for step in host.steps)
    return tuple(window for window in found if window is not None)


def _window(
    step: HostStep, launches: Sequence[tuple[int, int]], ends: Mapping[int, int]
) -> Window | None:
    first = bisect_left(launches, (step.start, -_FOREVER))
    last = bisect_right(launches, (step.end, _FOREVER))
    if first == last:
        return None
    earliest = launches[first][1]
    latest = launches[last - 1][0]
    end = max(
        ends.get(start, start)
        for launch, start in launches[bisect_left(launches, (latest, -_FOREVER)) : last]
    )
    return Window(step, earliest, max(end, step.end))


def ends_by_start(tasks: Sequence[Task], calls: Sequence[Call]) -> dict[int, int]:
    """The latest end of what starts at a moment."""
    ends: dict[int, int] = {}
    spans = [(task.start, task.end) for task in tasks] + [(call.start, call.end) for call in calls]
    for start, end in spans:
        ends[start] = max(ends.get(start, end), end)
    return ends


def window_at(windows: Sequence[Window], moment: int) -> Window | None:
    """The first window that the moment lies in; what lies between steps belongs to none.

    The windows are in the order of the steps, so a kernel that one step launched while the
    device was still busy with the step before counts for the latter, as torch_npu has it.
    """
    at = bisect_right(windows, moment, key=_start) - 1
    while at > 0 and windows[at - 1].start <= moment < windows[at - 1].end:
        at -= 1
    return windows[at] if at >= 0 and moment < windows[at].end else None


def _start(window: Window) -> int:
    return window.start
