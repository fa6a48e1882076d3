"""Communication by operation, group and step, and how much of it computing hid."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.analyze.intervals import total, within
from autotune.analyze.kineto.activity import Activity
from autotune.analyze.kineto.events import Collective, Recording
from autotune.analyze.kineto.windows import Window, step_of
from autotune.analyze.profile import CollectiveTime


def collective_times(
    recording: Recording, activity: Activity, windows: Sequence[Window]
) -> tuple[CollectiveTime, ...]:
    """One value an operation, group and step (None: outside of all), the longest first."""
    groups: dict[tuple[str, str, int | None], list[Collective]] = {}
    for each in recording.collectives:
        key = (each.operation, each.group, step_of(windows, each.start))
        groups.setdefault(key, []).append(each)
    times = [
        CollectiveTime(
            operation=operation,
            group=group,
            count=len(members),
            step=step,
            elapsed_us=sum(each.end - each.start for each in members) / 1000,
            size_bytes=_bytes(members),
            overlapped_us=sum(_hidden(each, activity) for each in members) / 1000,
        )
        for (operation, group, step), members in groups.items()
    ]
    return tuple(sorted(times, key=lambda time: -time.elapsed_us))


def _hidden(each: Collective, activity: Activity) -> int:
    return total(within(activity.computing, each.start, each.end))


def _bytes(members: Sequence[Collective]) -> float | None:
    """Half a sum would make a wrong bandwidth: None where one of the sizes is unknown."""
    sizes = [each.size_bytes for each in members if each.size_bytes is not None]
    return sum(sizes) if len(sizes) == len(members) else None
