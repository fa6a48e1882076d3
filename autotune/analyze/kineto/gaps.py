"""The longest times in a step in which the device did nothing, or nothing but communicate."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.analyze.intervals import Interval, subtract, within
from autotune.analyze.kineto.activity import Activity
from autotune.analyze.kineto.events import DeviceTask, HostCall, Recording, TaskKind
from autotune.analyze.kineto.windows import Window
from autotune.analyze.profile import Gap

_MOST = 50
_HOST = "host"
_COMMUNICATION = "communication"


def longest_gaps(
    recording: Recording, activity: Activity, windows: Sequence[Window]
) -> tuple[Gap, ...]:
    """The 50 longest, by time; shorter ones are in the steps' `free_us` all the same."""
    if recording.span is None:
        return ()
    idle = subtract([recording.span], activity.busy)
    found: list[tuple[int, Interval, str, Window]] = []
    for cause, stretches in ((_HOST, idle), (_COMMUNICATION, activity.exposed)):
        for window in windows:
            for start, end in within(stretches, window.start, window.end):
                found.append((end - start, (start, end), cause, window))
    longest = heapq.nlargest(_MOST, found, key=lambda each: each[0])
    lanes = {cause: _lanes(recording, cause) for cause in (_HOST, _COMMUNICATION)}
    return tuple(
        Gap(
            start_us=(start - recording.origin) / 1000,
            duration_us=length / 1000,
            cause=cause,
            before=_before(lanes[cause], start),
            after=_after(lanes[cause], end),
            step=window.number,
        )
        for length, (start, end), cause, window in sorted(longest, key=lambda each: each[1])
    )


@dataclass(frozen=True)
class _Lane:
    """What a stream or a thread ran, the outermost only, so in order of start and of end."""

    rows: Sequence[DeviceTask | HostCall]
    starts: Sequence[int]
    ends: Sequence[int]


def _lanes(recording: Recording, cause: str) -> list[_Lane]:
    """All streams, or all threads; without communication where that is all that runs."""
    rows: Mapping[str, Sequence[DeviceTask | HostCall]] = recording.operators
    if not recording.is_host_only:
        streams: dict[str, list[DeviceTask | HostCall]] = {}
        for task in recording.tasks:
            if cause != _COMMUNICATION or task.kind is not TaskKind.COMMUNICATION:
                streams.setdefault(task.stream, []).append(task)
        rows = streams
    return [_lane(each) for each in rows.values()]


def _lane(rows: Iterable[DeviceTask | HostCall]) -> _Lane:
    outer: list[DeviceTask | HostCall] = []
    for row in rows:
        if not outer or row.end > outer[-1].end:
            outer.append(row)
    return _Lane(outer, [row.start for row in outer], [row.end for row in outer])


def _before(lanes: Iterable[_Lane], moment: int) -> str:
    """What ended last."""
    places = [(lane, bisect_right(lane.ends, moment) - 1) for lane in lanes]
    rows = [lane.rows[place] for lane, place in places if place >= 0]
    return max(rows, key=lambda row: row.end).name if rows else ""


def _after(lanes: Iterable[_Lane], moment: int) -> str:
    """What begins first."""
    places = [(lane, bisect_left(lane.starts, moment)) for lane in lanes]
    rows = [lane.rows[place] for lane, place in places if place < len(lane.rows)]
    return min(rows, key=lambda row: row.start).name if rows else ""
