"""Interval algebra against sets of integers."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from autotune.analyze.intervals import Interval, clip, intersect, subtract, total, union, within

_ENDS = st.integers(-20, 20)
# Empty and reversed ones too: profilers write events of no length.
_INTERVALS = st.lists(st.tuples(_ENDS, _ENDS), max_size=12)


def _moments(intervals: list[Interval]) -> set[int]:
    return {moment for start, end in intervals for moment in range(start, end)}


def _is_tidy(intervals: list[Interval]) -> bool:
    ends = [end for interval in intervals for end in interval]
    return all(a < b for a, b in itertools.pairwise(ends))


@given(_INTERVALS)
def test_union_covers_what_any_covers(intervals: list[Interval]) -> None:
    assert _moments(union(intervals)) == _moments(intervals)
    assert _is_tidy(union(intervals))


@given(_INTERVALS)
def test_total_counts_each_moment_once(intervals: list[Interval]) -> None:
    assert total(intervals) == len(_moments(intervals))


@given(_INTERVALS, _INTERVALS)
def test_intersect_covers_what_both_cover(first: list[Interval], second: list[Interval]) -> None:
    common = intersect(first, second)
    assert _moments(common) == _moments(first) & _moments(second)
    assert _is_tidy(common)


@given(_INTERVALS, _INTERVALS)
def test_subtract_leaves_what_only_the_first_covers(
    first: list[Interval], second: list[Interval]
) -> None:
    left = subtract(first, second)
    assert _moments(left) == _moments(first) - _moments(second)
    assert _is_tidy(left)


@given(_INTERVALS, _ENDS, _ENDS)
def test_clip_and_within_keep_what_lies_between(
    intervals: list[Interval], start: int, end: int
) -> None:
    expected = _moments(intervals) & set(range(start, end))
    assert _moments(clip(intervals, start, end)) == expected
    assert within(union(intervals), start, end) == clip(intervals, start, end)


def test_a_hole_across_two_intervals() -> None:
    assert subtract([(0, 4), (6, 10)], [(3, 7)]) == [(0, 3), (7, 10)]


def test_half_a_million_intervals_take_linear_time() -> None:
    many = [(2 * i, 2 * i + 1) for i in range(250_000)]
    assert subtract([(0, 500_000)], many) == [(s + 1, s + 2) for s, _ in many]
    assert total(intersect(many, [(0, 500_000)])) == 250_000
