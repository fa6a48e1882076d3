"""Which steps of a run are scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.measure.records import RankRecords, StepRecord
from autotune.measure.warmup import TimedStep, warmup_length

_LONGEST_S = 1e7  # four months are no step
_SHORTEST_S = 1e-6  # nor is what one call of a device takes longer than

Row = tuple[StepRecord, ...]
"""One step as every rank saw it."""


@dataclass(frozen=True)
class ScoredSteps:
    """The steps of a run that count.

    rows: of all steps that every rank recorded. steps: scored, in order. found: left out as
    warm-up beyond the planned ones. short: how many steps did not do
    their full work, by cause. broken: why the run cannot be timed at all, None where it can.
    """

    rows: tuple[Row, ...]
    steps: tuple[TimedStep, ...]
    found: tuple[TimedStep, ...] = ()
    short: tuple[tuple[str, int], ...] = ()
    broken: str | None = None

    @property
    def warmup_steps(self) -> int:
        """How many steps were found to be warm-up beyond the planned ones."""
        return len(self.found)

    def with_warmup(self) -> ScoredSteps:
        """With the warm-up that was found, for a run that is too short to do without it."""
        return replace(self, steps=(*self.found, *self.steps), found=())

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
    rows = _rows(ranks)
    timed = [row for row in rows[planned_warmup:] if not any(step.profiled for step in row)]
    if broken := next(filter(None, map(_broken, timed)), None):
        return ScoredSteps(rows, (), broken=broken)
    short = Counter(filter(None, map(_shortfall, timed)))
    full = [_timed(row, window_steps) for row in timed if _shortfall(row) is None]
    warmup = warmup_length(full)
    return ScoredSteps(rows, tuple(full[warmup:]), tuple(full[:warmup]), tuple(short.most_common()))


def _rows(ranks: Sequence[RankRecords]) -> tuple[Row, ...]:
    """The steps that every rank recorded, by their number: a line may be missing anywhere."""
    by_number = [{step.step: step for step in rank.steps} for rank in ranks]
    common = set.intersection(*map(set, by_number)) if by_number else set()
    return tuple(tuple(steps[number] for steps in by_number) for number in sorted(common))


def _timed(row: Row, window_steps: int) -> TimedStep:
    number = row[0].step
    return TimedStep(number, number % window_steps, max(step.time_s for step in row))


def _broken(row: Row) -> str | None:
    for step in row:
        if not _SHORTEST_S <= step.time_s < _LONGEST_S:
            return f"step {step.step} took {step.time_s:.6g} s, which is no time of a step"
    return None


def _shortfall(row: Row) -> str | None:
    return next(filter(None, (step.shortfall for step in row)), None)
