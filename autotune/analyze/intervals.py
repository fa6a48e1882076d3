"""Sets of moments as lists of intervals: what is covered, for how long, and by what not.

An interval is half open, `(start, end)` in integer nanoseconds; one that ends no later than it
starts is empty and is passed over. Every function but `within` takes its intervals in any order,
overlapping or not, and gives them back sorted, disjoint and not touching: the cost is that of
sorting (which is linear for what is sorted already), then linear.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The moments that any of the intervals covers."""
    merged: list[Interval] = []
    open_start = open_end = 0
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if start > open_end or open_end == open_start:
            if open_end > open_start:
                merged.append((open_start, open_end))
            open_start, open_end = start, end
        elif end > open_end:
            open_end = end
    if open_end > open_start:
        merged.append((open_start, open_end))
    return merged


def total(intervals: Iterable[Interval]) -> int:
    """Nanoseconds that the intervals cover, each moment counted once."""
    return sum(end - start for start, end in union(intervals))


def intersect(first: Iterable[Interval], second: Iterable[Interval]) -> list[Interval]:
    """The moments that both cover."""
    left, right = union(first), union(second)
    common: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start = max(left[i][0], right[j][0])
        end = min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] <= right[j][1]:
            i += 1
        else:
            j += 1
    return common


def subtract(intervals: Iterable[Interval], taken: Iterable[Interval]) -> list[Interval]:
    """The moments that `intervals` cover and `taken` do not."""
    holes = union(taken)
    left: list[Interval] = []
    j = 0
    for start, end in union(intervals):
        while j < len(holes) and holes[j][1] <= start:
            j += 1
        k = j
        while k < len(holes) and holes[k][0] < end:
            if holes[k][0] > start:
                left.append((start, holes[k][0]))
            start = max(start, holes[k][1])
            k += 1
        # The last hole may reach into the next interval, so it is looked at again.
        j = max(j, k - 1)
        if start < end:
            left.append((start, end))
    return left


def clip(intervals: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """The moments that the intervals cover from `start` to `end`."""
    return union((max(begin, start), min(stop, end)) for begin, stop in intervals)


def within(disjoint: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """`clip` for what `union` returned: as long as its answer, not as the whole list."""
    if start >= end:
        return []
    first = bisect_right(disjoint, start, key=_end)
    last = bisect_left(disjoint, end, lo=first, key=_start)
    return [(max(begin, start), min(stop, end)) for begin, stop in disjoint[first:last]]


def _start(interval: Interval) -> int:
    return interval[0]


def _end(interval: Interval) -> int:
    return interval[1]
