"""Printed times against recorded ones."""

from __future__ import annotations

from autotune.measure.crosscheck import disagreement
from autotune.measure.records import RankRecords, StepRecord


def told(*times: float) -> RankRecords:
    steps = tuple(StepRecord(number, time_s) for number, time_s in enumerate(times, 1))
    return RankRecords(0, steps=steps)


def test_the_slowest_rank_is_what_a_program_prints() -> None:
    ranks = [told(9.0, 1.0, 1.1, 1.0, 1.0), told(9.0, 1.2, 1.2, 1.2, 1.2)]
    assert disagreement(ranks, [told(30.0, 1.2, 1.25, 1.2, 1.2)]) is None


def test_times_of_another_unit_or_interval_are_found() -> None:
    note = disagreement([told(9.0, 1.0, 1.0, 1.0, 1.0)], [told(9.0, 2.0, 2.0, 2.0, 2.0)])
    assert note == "the program prints 2.00 times the recorded time of a step"


def test_nothing_is_said_where_little_was_printed() -> None:
    assert disagreement([told(1.0, 1.0, 1.0)], [told(5.0, 5.0)]) is None
    assert disagreement([told(1.0, 1.0, 1.0)], []) is None
