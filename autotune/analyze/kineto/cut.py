"""Which steps of a file that ends in the middle are there with everything that belongs to them.

Kineto writes the host's calls first, thread by thread, then the device's tasks with the calls
that launched them. Within a thread calls are in order of time; tasks are not in any order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.analyze.kineto.events import HostCall, Launch, Recording
from autotune.analyze.kineto.messages import is_communication_range
from autotune.analyze.kineto.windows import Window

# Of the calls of operators that launch tasks, so many do at least in a step that is whole, and
# steps that are whole differ by so little.
_LEAST_SHARE = 0.85
_SPREAD = 0.005


def whole_windows(
    windows: Sequence[Window], recording: Recording, thread: str
) -> tuple[Window, ...]:
    """The steps of which nothing can have been lost."""
    if recording.closed:
        return tuple(windows)
    if recording.is_host_only:
        return tuple(each for each in windows if _is_whole_on_host(each, recording, thread))
    threads = [_launching(calls, name, recording) for name, calls in recording.operators.items()]
    names = {calls.names[place] for calls in threads for place in calls.launched}
    shares = [_launched_share(window, threads, names) for window in windows]
    best = max(shares, default=0.0)
    return tuple(
        window
        for window, share in zip(windows, shares, strict=True)
        if share >= max(best - _SPREAD, _LEAST_SHARE)
    )


def _is_whole_on_host(window: Window, recording: Recording, thread: str) -> bool:
    """What follows the step on its own thread is there, and all communication it started."""
    calls = [*recording.operators.get(thread, ())[-1:], *recording.ranges.get(thread, ())[-1:]]
    if window.end > max((call.start for call in calls), default=0):
        return False
    started = sum(window.start <= each.start < window.end for each in recording.starts)
    ran = sum(
        is_communication_range(call.name) and window.start <= call.start < window.end
        for rows in recording.ranges.values()
        for call in rows
    )
    return started <= ran


@dataclass(frozen=True)
class _Thread:
    """The operators of a thread by start. launched: places of those that launched a task."""

    starts: Sequence[int]
    names: Sequence[str]
    launched: frozenset[int]


def _launching(calls: Sequence[HostCall], thread: str, recording: Recording) -> _Thread:
    done = {task.correlation for task in recording.tasks}
    launches = sorted(
        launch
        for cause, launch in recording.launches.items()
        if launch.thread == thread and cause in done
    )
    return _Thread(
        [call.start for call in calls],
        [call.name for call in calls],
        frozenset(_innermost(calls, launches)),
    )


def _innermost(calls: Sequence[HostCall], launches: Sequence[Launch]) -> set[int]:
    """The places of the calls that were open, the innermost of each, at the launches."""
    found: set[int] = set()
    stack: list[int] = []
    place = 0
    for launch in launches:
        while place < len(calls) and calls[place].start <= launch.at:
            stack.append(place)
            place += 1
            while len(stack) > 1 and calls[stack[-2]].end <= calls[stack[-1]].start:
                del stack[-2]
        while stack and calls[stack[-1]].end < launch.at:
            stack.pop()
        if stack:
            found.add(stack[-1])
    return found


def _launched_share(window: Window, threads: Sequence[_Thread], names: set[str]) -> float:
    """Of the step's calls of operators that launch tasks, how many did."""
    expected = found = 0
    for thread in threads:
        first, last = (bisect_left(thread.starts, moment) for moment in window.host)
        for place in range(first, last):
            expected += thread.names[place] in names
            found += place in thread.launched
    return found / expected if expected else 0.0
