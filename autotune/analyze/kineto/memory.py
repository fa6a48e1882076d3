"""torch's allocator over time: totals, the peak, and the allocations that were live at it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from autotune.analyze.kineto.events import HostCall, MemoryChange, Recording
from autotune.analyze.kineto.windows import step_number
from autotune.analyze.profile import MemoryHolder, MemoryPoint, MemoryUse

# So many points show a curve; of those that lie between two, the largest is kept.
_MOST_POINTS = 2000
# Allocations at the peak that are listed one by one; the rest is summed by operator.
_MOST_HOLDERS = 500
# Operators that only allocate: the one that called them says what the memory is for.
_ALLOCATING = re.compile(
    r"aten::(?:empty\w*|new_empty\w*|zeros\w*|new_zeros|ones\w*|full\w*|resize_|to|_to_copy|contiguous)"
)
BEFORE_THE_TRACE = "allocated before the trace began"
OUTSIDE = "outside of any operator"
# Old traces have no totals.
GROWTH = "growth since the trace began"


def memory_use(recording: Recording) -> MemoryUse | None:
    """The memory of the trace's own devices; None where none was recorded."""
    by_device: dict[str, list[MemoryChange]] = {}
    for change in recording.memory:
        if change.device.partition(":")[0] == recording.device:
            by_device.setdefault(change.device, []).append(change)
    if not by_device:
        return None
    curves = {name: _curve(name, changes, recording.origin) for name, changes in by_device.items()}
    tops = {name: max(curve, key=lambda p: p.allocated_bytes) for name, curve in curves.items()}
    largest = max(tops, key=lambda name: tops[name].allocated_bytes)
    return MemoryUse(
        points=tuple(point for curve in curves.values() for point in _thin(curve)),
        peaks_bytes={
            curve[0].component: max(max(p.allocated_bytes, p.reserved_bytes or 0.0) for p in curve)
            for curve in curves.values()
        },
        peak_at_us=tops[largest].time_us,
        holders=_holders(recording, by_device[largest]),
    )


def _curve(name: str, changes: Sequence[MemoryChange], origin: int) -> list[MemoryPoint]:
    totals = all(change.allocated is not None for change in changes)
    component = name if totals else f"{name} ({GROWTH})"
    points = []
    grown = 0
    for change in changes:
        grown += change.size_bytes
        allocated = change.allocated if totals and change.allocated is not None else grown
        # The allocator of the host reserves nothing, and says 0.
        reserved = float(change.reserved) if totals and change.reserved else None
        at_us = (change.at - origin) / 1000
        points.append(MemoryPoint(at_us, component, float(allocated), reserved))
    return points


def _thin(curve: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """At most so many points, the largest of each stretch: the peak stays."""
    stretch = -(-len(curve) // _MOST_POINTS)
    return [
        max(curve[start : start + stretch], key=lambda point: point.allocated_bytes)
        for start in range(0, len(curve), stretch)
    ]


def _holders(recording: Recording, changes: Sequence[MemoryChange]) -> tuple[MemoryHolder, ...]:
    """What was live at the peak, largest first; nothing where addresses were not recorded."""
    if any(change.address is None or change.allocated is None for change in changes):
        return ()
    peak = max(range(len(changes)), key=lambda place: changes[place].allocated or 0)
    live: dict[int, MemoryChange] = {}
    for change in changes[: peak + 1]:
        assert change.address is not None
        if change.size_bytes > 0:
            live[change.address] = change
        else:
            live.pop(change.address, None)
    makers = _makers(recording, live.values())
    released = _releases(changes[peak + 1 :], live)
    origin = recording.origin
    holders = [
        MemoryHolder(
            by=makers.get(address, OUTSIDE),
            size_bytes=float(change.size_bytes),
            allocated_at_us=(change.at - origin) / 1000,
            released_at_us=(released[address] - origin) / 1000 if address in released else None,
        )
        for address, change in live.items()
    ]
    unknown = (changes[peak].allocated or 0) - sum(change.size_bytes for change in live.values())
    if unknown > 0:
        holders.append(MemoryHolder(BEFORE_THE_TRACE, float(unknown)))
    holders.sort(key=lambda holder: -holder.size_bytes)
    rest = _summed(holders[_MOST_HOLDERS:])
    return tuple(sorted([*holders[:_MOST_HOLDERS], *rest], key=lambda h: -h.size_bytes))


def _releases(changes: Iterable[MemoryChange], live: dict[int, MemoryChange]) -> dict[int, int]:
    """When each address was given back first."""
    released: dict[int, int] = {}
    for change in changes:
        if change.size_bytes < 0 and change.address in live:
            released.setdefault(change.address, change.at)
    return released


def _summed(holders: Sequence[MemoryHolder]) -> list[MemoryHolder]:
    sums: dict[str, float] = {}
    for holder in holders:
        sums[holder.by] = sums.get(holder.by, 0.0) + holder.size_bytes
    return [MemoryHolder(f"{by} (small ones together)", size) for by, size in sums.items()]


def _makers(recording: Recording, allocations: Iterable[MemoryChange]) -> dict[int, str]:
    """The operator, else the range, that was open on the thread of each allocation, by address."""
    by_thread: dict[str, list[MemoryChange]] = {}
    for change in allocations:
        by_thread.setdefault(change.thread, []).append(change)
    makers: dict[int, str] = {}
    for thread, changes in by_thread.items():
        changes.sort(key=lambda change: change.at)
        operators = _open_at(recording.operators.get(thread, ()), changes)
        ranges = _open_at(recording.ranges.get(thread, ()), changes)
        for change, names, around in zip(changes, operators, ranges, strict=True):
            assert change.address is not None
            makers[change.address] = _maker(names, around)
    return makers


def _open_at(calls: Sequence[HostCall], changes: Iterable[MemoryChange]) -> Iterator[list[str]]:
    """What was open on a thread at each change, the outer first."""
    stack: list[HostCall] = []
    position = 0
    for change in changes:
        while position < len(calls) and calls[position].start <= change.at:
            while stack and stack[-1].end <= calls[position].start:
                stack.pop()
            stack.append(calls[position])
            position += 1
        yield [call.name for call in stack if call.end >= change.at]


def _maker(operators: Sequence[str], ranges: Sequence[str]) -> str:
    """The innermost operator that does more than allocate, else the outermost, else a range."""
    telling = [name for name in operators if not _ALLOCATING.fullmatch(name)]
    if telling:
        return telling[-1]
    named = [name for name in ranges if step_number(name) is None]
    return next(iter([*operators[:1], *named[-1:]]), OUTSIDE)
