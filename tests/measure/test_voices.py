"""One rank, or printed lines, that speak for all ranks of a run."""

from __future__ import annotations

from typing import Any

from autotune.measure.records import MemoryRecord, RankError, RankRecords, StepRecord
from autotune.measure.voices import spoken_for_all, with_own_memory


def steps(count: int, **fields: Any) -> tuple[StepRecord, ...]:
    return tuple(StepRecord(number, 0.5, **fields) for number in range(count))


def memory(rank: int, peak: int) -> MemoryRecord:
    return MemoryRecord(rank, None, peak)


def test_the_rank_with_most_steps_speaks_for_the_silent_ones() -> None:
    ranks = [RankRecords(0), RankRecords(1, steps=steps(3)), RankRecords(2, steps=steps(2))]
    heard = spoken_for_all(ranks, [])
    assert [len(one.steps) for one in heard] == [3, 3, 2]
    assert [one.rank for one in heard] == [0, 1, 2]
    assert all(one.started for one in heard)


def test_printed_lines_count_where_no_rank_recorded_a_step() -> None:
    """Else a step would be told twice; of several nodes, that which printed most is heard."""
    printed = [RankRecords(0), RankRecords(1, steps=steps(4, loss=7.0))]
    silent = spoken_for_all([RankRecords(0), RankRecords(1)], printed)
    assert [one.steps for one in silent] == [printed[1].steps] * 2
    told = spoken_for_all([RankRecords(0, steps=steps(2)), RankRecords(1)], printed)
    assert [len(one.steps) for one in told] == [2, 2]


def test_memory_and_errors_stay_with_their_rank() -> None:
    error = RankError(1, "oom", "full")
    ranks = [
        RankRecords(0, steps=steps(2), memory=(memory(1, 70), memory(0, 50))),
        RankRecords(1, errors=(error,)),
    ]
    printed = [RankRecords(0, memory=(memory(1, 90),))]
    first, second = spoken_for_all(ranks, printed)
    assert (first.peak_device_bytes, second.peak_device_bytes) == (50, 90)
    assert (first.errors, second.errors) == ((), (error,))


def test_of_a_rank_that_is_not_there_nothing_is_told() -> None:
    (only,) = spoken_for_all([RankRecords(0, steps=steps(1), memory=(memory(7, 9),))], [])
    assert only.peak_device_bytes is None


def test_memory_that_one_file_tells_of_several_ranks() -> None:
    """As where the launcher watches what processes hold, and every rank records its steps."""
    ranks = [
        RankRecords(0, steps=steps(1), memory=(memory(0, 50), memory(1, 70))),
        RankRecords(1, steps=steps(2)),
    ]
    first, second = with_own_memory(ranks)
    assert (first.peak_device_bytes, second.peak_device_bytes) == (50, 70)
    assert (len(first.steps), len(second.steps)) == (1, 2)


def test_nobody_says_anything() -> None:
    assert spoken_for_all([], []) == []
    (one,) = spoken_for_all([RankRecords(0)], [RankRecords(0)])
    assert one.steps == ()
