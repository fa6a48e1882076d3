"""What a person is told while a sweep runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.certify.results import Results
from autotune.space.point import Point
from autotune.study.best import record_of
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import GateNote, TrialRecord


@dataclass(frozen=True)
class RunningTrial:
    """A run on the devices now. started_at: launcher clock, seconds. steps: done so far.

    role: None for a trial, else why a measured point runs again; trial is then the repeat's
    number, and round that of a contest. note: what the memory gate expected of it.
    """

    trial: int
    point: Point
    attempt: int
    started_at: float
    steps: int = 0
    total_steps: int = 0
    role: Role | None = None
    round: int = 0
    note: GateNote | None = None


@dataclass(frozen=True)
class Progress:
    """One moment of a sweep.

    results: all runs so far. finished, max_trials: trials that count, and their bound. unseen:
    legal points that nobody has launched. left_s: estimate of the seconds that remain, None
    before the first trial has ended. now: launcher clock.
    """

    running: tuple[RunningTrial, ...]
    results: Results
    finished: int
    max_trials: int
    unseen: int
    left_s: float | None
    now: float

    @property
    def records(self) -> Sequence[TrialRecord]:
        """Finished trials, and those that the memory gate has refused."""
        return self.results.records

    @property
    def baseline_point(self) -> Point:
        """What the user runs today."""
        return self.results.baseline

    @property
    def best(self) -> TrialRecord | None:
        """The trial of the best feasible point so far."""
        return self.results.best.record if self.results.best is not None else None

    @property
    def baseline(self) -> TrialRecord | None:
        """The baseline's result, once there is one."""
        return record_of(self.records, self.baseline_point)


def finished_progress(results: Results, max_trials: int) -> Progress:
    """The state of a study on which no sweep is running here."""
    return Progress(
        running=(),
        results=results,
        finished=sum(record.counts for record in results.records),
        max_trials=max_trials,
        unseen=0,
        left_s=None,
        now=0.0,
    )


class Listener(Protocol):
    """Shows a sweep to a person."""

    def started(self, trial: RunningTrial) -> None:
        """A run has been launched."""
        ...

    def finished(self, record: TrialRecord, progress: Progress) -> None:
        """A trial has ended, or was refused by the memory gate, and is kept."""
        ...

    def repeated(self, repeat: Repeat, progress: Progress) -> None:
        """Another run of a measured point has ended and is kept."""
        ...

    def moment(self, progress: Progress) -> None:
        """Called several times a second."""
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
    turns_left: int = 0,
) -> float | None:
    """Seconds until the budget is used, from the median cost of the trials so far.

    trials_left: trials that are still to be launched; turns_left: further runs of measured
    points, one after the other. deadline_left_s: what `max_hours` leaves, an upper bound.
    """
    typical = typical_cost_s(records)
    if typical is None:
        return deadline_left_s
    waiting = sum(max(typical - (now - trial.started_at), 0.0) for trial in running)
    left = (waiting + typical * trials_left) / slots + typical * turns_left
    return left if deadline_left_s is None else min(left, max(deadline_left_s, 0.0))


def typical_cost_s(records: Sequence[TrialRecord]) -> float | None:
    """Median seconds that a trial took its devices, None before one has ended."""
    costs = [record.cost_s for record in records if record.cost_s > 0 and record.counts]
    return statistics.median(costs) if costs else None
