"""Which steps of a run are scored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.records import RankRecords, StepRecord
from autotune.measure.warmup import TimedStep, warmup_length

Row = tuple[StepRecord, ...]
"""One step as every rank saw it."""


@dataclass(frozen=True)
class ScoredSteps:
    """The steps of a run that count.

    rows: of all steps that every rank recorded. steps: scored, in order. warmup_steps: left
    out as warm-up beyond the planned ones. short: how many steps did not do their full work,
    by cause. broken: why the run cannot be timed at all, None where it can.
    """

    rows: tuple[Row, ...]
    steps: tuple[TimedStep, ...]
    warmup_steps: int = 0
    short: tuple[tuple[str, int], ...] = ()
    broken: str | None = None

    def rows_of(self, numbers: Sequence[int]) -> list[Row]:
        """The rows of the steps with these numbers."""
        wanted = set(numbers)
        return [row for row in self.rows if row[0].step in wanted]


def scored_steps(
    ranks: Sequence[RankRecords], planned_warmup: int, window_steps: int
) -> ScoredSteps:
    """Takes out the planned warm-up, profiled steps, steps short of work, and found warm-up.

    A step takes as long as its slowest rank, for whom all others wait.
    """
    count = min((len(rank.steps) for rank in ranks), default=0)
    rows = tuple(tuple(rank.steps[number] for rank in ranks) for number in range(count))
    timed = [row for row in rows[planned_warmup:] if not any(step.profiled for step in row)]
    if broken := next(filter(None, map(_broken, timed)), None):
        return ScoredSteps(rows, (), broken=broken)
    short = Counter(filter(None, map(_shortfall, timed)))
    full = [_timed(row, window_steps) for row in timed if _shortfall(row) is None]
    warmup = warmup_length(full)
    return ScoredSteps(rows, tuple(full[warmup:]), warmup, tuple(short.most_common()))


def _timed(row: Row, window_steps: int) -> TimedStep:
    number = row[0].step
    return TimedStep(number, number % window_steps, max(step.time_s for step in row))


def _broken(row: Row) -> str | None:
    for step in row:
        if not (math.isfinite(step.time_s) and step.time_s > 0):
            return f"step {step.step} took {step.time_s} s, which is no time"
    return None


def _shortfall(row: Row) -> str | None:
    return next(filter(None, (step.shortfall for step in row)), None)
