"""What a person is told while a sweep runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.space.point import Point
from autotune.study.best import best_record, record_of
from autotune.study.trial_record import TrialRecord


@dataclass(frozen=True)
class RunningTrial:
    """A trial on the devices now. started_at: launcher clock, seconds. steps: done so far."""

    trial: int
    point: Point
    attempt: int
    started_at: float
    steps: int = 0
    total_steps: int = 0


@dataclass(frozen=True)
class Progress:
    """One moment of a sweep.

    finished, max_trials: trials that count, and their bound. unseen: legal points that
    nobody has tried. left_s: estimate of the seconds that remain, None before the first
    trial has ended. now: launcher clock.
    """

    running: tuple[RunningTrial, ...]
    records: tuple[TrialRecord, ...]
    baseline_point: Point
    finished: int
    max_trials: int
    unseen: int
    left_s: float | None
    now: float

    @property
    def best(self) -> TrialRecord | None:
        """The best feasible trial so far."""
        return best_record(self.records)

    @property
    def baseline(self) -> TrialRecord | None:
        """The baseline's result, once there is one."""
        return record_of(self.records, self.baseline_point)


def finished_progress(
    records: tuple[TrialRecord, ...], baseline_point: Point, max_trials: int
) -> Progress:
    """The state of a study on which no sweep is running here."""
    return Progress(
        running=(),
        records=records,
        baseline_point=baseline_point,
        finished=sum(record.counts for record in records),
        max_trials=max_trials,
        unseen=0,
        left_s=None,
        now=0.0,
    )


class Listener(Protocol):
    """Shows a sweep to a person."""

    def started(self, trial: RunningTrial) -> None:
        """A trial has been launched."""
        ...

    def finished(self, record: TrialRecord, progress: Progress) -> None:
        """A trial has ended and is kept."""
        ...

    def moment(self, progress: Progress) -> None:
        """Called about once a second."""
        ...

    def said(self, message: str) -> None:
        """Something a person should know."""
        ...


def estimate_left_s(
    records: Sequence[TrialRecord],
    running: Sequence[RunningTrial],
    trials_left: int,
    slots: int,
    deadline_left_s: float | None,
    now: float,
) -> float | None:
    """Seconds until the budget is used, from the median cost of the trials so far.

    trials_left: trials that are still to be launched. deadline_left_s: what `max_hours`
    leaves, which bounds the estimate.
    """
    costs = [record.cost_s for record in records if record.cost_s > 0 and record.counts]
    if not costs:
        return deadline_left_s
    typical = statistics.median(costs)
    waiting = sum(max(typical - (now - trial.started_at), 0.0) for trial in running)
    left = (waiting + typical * trials_left) / slots
    return left if deadline_left_s is None else min(left, max(deadline_left_s, 0.0))
