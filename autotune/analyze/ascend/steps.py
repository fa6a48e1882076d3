"""Step times: from `step_trace_time.csv`, else from a timeline by the same rules.

The rules are torch_npu's (2.13, `_trace_step_time_parser`): computing, communication and free
are sums over the intervals that begin in the step; overlapped = communication - not overlapped;
bubble = sum of `hcom_receive*`; stage = from the first to the last of them - bubble; preparing =
from the step's start on the host to the first computing or communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.timeline import Timeline, Window
from autotune.analyze.ascend.values import number, whole
from autotune.analyze.ascend.windows import window_at
from autotune.analyze.intervals import Interval
from autotune.analyze.profile import StepTime

# Column of the CSV -> column of the database's table StepTraceTime.
COLUMNS = {
    "Computing": "computing",
    "Communication(Not Overlapped)": "communication_not_overlapped",
    "Overlapped": "overlapped",
    "Communication": "communication",
    "Free": "free",
    "Stage": "stage",
    "Bubble": "bubble",
    "Preparing": "preparing",
}
_NEEDED = ("Computing", "Communication(Not Overlapped)", "Free")


def steps_from_table(table: Table) -> tuple[StepTime, ...]:
    """The rows of `step_trace_time.csv`; of several devices the one that computed most.

    A row without the figures that the others follow from is passed over.
    """
    if table.lacks(_NEEDED):
        return ()
    names = list(COLUMNS)
    return steps_of_rows(
        (device, step, dict(zip(names, map(number, cells), strict=True)))
        for device, step, *cells in table.rows("Device_id", "Step", *names)
    )


def steps_of_rows(
    rows: Iterable[tuple[str, object, Mapping[str, float | None]]],
) -> tuple[StepTime, ...]:
    """Rows of device, step and figures by the CSV's column names."""
    devices: dict[str, list[StepTime]] = {}
    for device, step, cells in rows:
        found = _from_cells(whole(step), cells)
        if found is not None:
            devices.setdefault(device, []).append(found)
    computed = {d: sum(step.computing_us for step in steps) for d, steps in devices.items()}
    busiest = max(computed, key=lambda device: computed[device], default="")
    return tuple(devices.get(busiest, ()))


def _from_cells(step: int | None, cells: Mapping[str, float | None]) -> StepTime | None:
    computing, hidden = cells.get("Computing"), cells.get("Overlapped")
    exposed, free = cells.get("Communication(Not Overlapped)"), cells.get("Free")
    if computing is None or exposed is None or free is None:
        return None
    all_of_it, bubble = cells.get("Communication"), cells.get("Bubble") or 0.0
    if hidden is None:
        hidden = 0.0 if all_of_it is None else max(all_of_it - exposed, 0.0)
    stage = cells.get("Stage")
    return StepTime(
        step=step,
        computing_us=computing,
        not_overlapped_us=exposed,
        overlapped_us=hidden,
        communication_us=exposed + hidden if all_of_it is None else all_of_it,
        free_us=free,
        stage_us=computing + exposed + free - bubble if stage is None else stage,
        bubble_us=bubble,
        preparing_us=max(cells.get("Preparing") or 0.0, 0.0),
    )


def steps_from_timeline(timeline: Timeline) -> tuple[StepTime, ...]:
    """One value a window in which the device did anything, and which was read to its end."""
    overlap, windows = timeline.overlap, timeline.windows
    # What was received twice at once was waited for twice, by the profiler's rule.
    receives = {(call.start, call.end, call.name) for call in timeline.calls if call.receives}
    parts = [
        _by_window(windows, intervals)
        for intervals in (
            overlap.computing,
            overlap.communication,
            overlap.not_overlapped,
            overlap.free,
            [(start, end) for start, end, _ in sorted(receives)],
        )
    ]
    found = (
        _step(window, _Parts(*(part.get(window, []) for part in parts)), timeline.host.first)
        for window in windows
        if timeline.lasts_beyond(window)
    )
    return tuple(step for step in found if step is not None)


class _Parts(NamedTuple):
    """What begins in one step."""

    computing: list[Interval]
    communication: list[Interval]
    exposed: list[Interval]
    free: list[Interval]
    bubbles: list[Interval]


def _step(window: Window, parts: _Parts, first_on_host: int | None) -> StepTime | None:
    tasks = [*parts.computing, *parts.communication]
    if not tasks:
        return None
    everything = [interval for part in parts for interval in part]
    length = max(end for _, end in everything) - min(start for start, _ in everything)
    begun = window.step.start if window.step else first_on_host
    waited = 0 if begun is None else max(min(start for start, _ in tasks) - begun, 0)
    communication, exposed = _length(parts.communication), _length(parts.exposed)
    bubble = _length(parts.bubbles)
    return StepTime(
        step=window.number,
        computing_us=_us(_length(parts.computing)),
        not_overlapped_us=_us(exposed),
        overlapped_us=_us(communication - exposed),
        communication_us=_us(communication),
        free_us=_us(_length(parts.free)),
        stage_us=_us(length - bubble),
        bubble_us=_us(bubble),
        preparing_us=_us(waited),
    )


def _by_window(
    windows: Sequence[Window], intervals: Sequence[Interval]
) -> dict[Window, list[Interval]]:
    """The intervals by the window that they begin in."""
    found: dict[Window, list[Interval]] = {}
    for interval in intervals:
        window = window_at(windows, interval[0])
        if window is not None:
            found.setdefault(window, []).append(interval)
    return found


def _length(intervals: Sequence[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000
