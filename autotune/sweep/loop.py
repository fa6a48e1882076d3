"""One sweep over one study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from autotune.config.schema import SearchConfig
from autotune.measure.judge import JudgeSettings, judge
from autotune.measure.outcome import Status, Work
from autotune.measure.read import read_ranks, steps_done
from autotune.ports import (
    Deadlines,
    Launcher,
    MeasurementPlan,
    Placement,
    Trainer,
    TrialEnd,
    TrialRequest,
)
from autotune.search.point_sampler import PointSampler
from autotune.space.point import Point
from autotune.study.best import record_of
from autotune.study.study import Study
from autotune.study.trial_record import TrialRecord
from autotune.sweep.progress import Listener, Progress, RunningTrial, estimate_left_s

_TICK_S = 1.0
# Trials that fail one after the other, from the first on, for the same reason: the cause is
# not in the points.
_HOPELESS_AFTER = 5
_INTERRUPTIONS = 3


class SweepEnd(StrEnum):
    """Why a sweep stopped launching trials."""

    TRIALS_USED = "search.max_trials is reached"
    TIME_USED = "search.max_hours is used up"
    SPACE_USED = "every legal point has been tried"
    HOPELESS = "the first trials all failed for the same reason"


@dataclass(frozen=True)
class SweepPlan:
    """What stays the same during a sweep."""

    search: SearchConfig
    placement: Placement
    deadlines: Deadlines
    measurement: MeasurementPlan
    judge: JudgeSettings


@dataclass
class Sweep:
    """The loop. `first` are points that are tried before the sampler is asked.

    changed: called after every kept result, to export what is best now.
    """

    study: Study
    trainer: Trainer
    launcher: Launcher
    sampler: PointSampler
    plan: SweepPlan
    listener: Listener
    changed: Callable[[], None]
    first: list[Point] = field(default_factory=list)
    _running: dict[int, RunningTrial] = field(default_factory=dict)
    _queue: list[Point] = field(default_factory=list)
    _started_at: float = 0.0

    def run(self) -> SweepEnd:
        """Runs until the budget or the space is used up, and says which.

        Trials that run when the budget ends are finished. An interrupt passes through; the
        caller closes the launcher and `stop` closes the trials.
        """
        self._started_at = self.launcher.now()
        lost = [r.parameters for r in self.study.records if self._is_open_again(r)]
        interrupted = Counter(self.study.interrupted_points())
        # A point that sweeps have died under again and again does not come first any more.
        again = [point for point, times in interrupted.items() if times <= _INTERRUPTIONS]
        wanted = [self.study.space.baseline, *self.first, *lost, *again]
        self._queue = [p for p in dict.fromkeys(wanted) if not self._is_measured(p)]
        while True:
            end = self._launch_what_fits()
            if not self._running:
                assert end is not None, "a slot is free and there is no reason to leave it so"
                return end
            ended = self.launcher.wait(_TICK_S)
            for trial_end in ended:
                self._finish(trial_end)
            self.listener.moment(self.progress())

    def stop(self, reason: str) -> list[int]:
        """Closes the running trials without a result; returns their numbers."""
        numbers = list(self._running)
        self._running.clear()
        self.study.close_running(reason)
        return numbers

    def progress(self) -> Progress:
        """This moment, for a person."""
        now, study = self.launcher.now(), self.study
        running = tuple(self._with_steps(trial) for trial in self._running.values())
        return Progress(
            running=running,
            records=tuple(study.records),
            baseline_point=study.space.baseline,
            finished=study.finished,
            max_trials=self.plan.search.max_trials,
            unseen=self._unseen_count(),
            left_s=estimate_left_s(
                study.records,
                running,
                min(self._trials_left(), self._unseen_count()),
                self.launcher.slots,
                self._time_left_s(),
                now,
            ),
            now=now,
        )

    def _launch_what_fits(self) -> SweepEnd | None:
        """Fills the free slots; why nothing more is launched, or None when all are taken."""
        while len(self._running) < self.launcher.slots:
            end = self._reason_to_end()
            if end is not None:
                return end
            self._launch()
        return None

    def _reason_to_end(self) -> SweepEnd | None:
        if self._trials_left() <= 0:
            return SweepEnd.TRIALS_USED
        left_s = self._time_left_s()
        if left_s is not None and left_s <= 0:
            return SweepEnd.TIME_USED
        if not self._queue and self._unseen_count() == 0:
            return SweepEnd.SPACE_USED
        if is_hopeless(self.study.records):
            return SweepEnd.HOPELESS
        return None

    def _trials_left(self) -> int:
        return self.plan.search.max_trials - self.study.finished - len(self._running)

    def _time_left_s(self) -> float | None:
        if self.plan.search.max_hours is None:
            return None
        used = self.launcher.now() - self._started_at
        return self.plan.search.max_hours * 3600 - used

    def _unseen_count(self) -> int:
        taken = {r.parameters for r in self.study.records if not self._is_open_again(r)}
        taken |= {trial.point for trial in self._running.values()}
        return len(self.study.space.points) - len(taken)

    def _is_open_again(self, record: TrialRecord) -> bool:
        # In this order: counting attempts goes through all records, and few trials are lost.
        if not record.status.may_retry:
            return False
        return self.study.attempts(record.parameters) < self.plan.search.max_attempts

    def _is_measured(self, point: Point) -> bool:
        record = record_of(self.study.records, point)
        return record is not None and not self._is_open_again(record)

    def _launch(self) -> None:
        if self._queue:
            point = self._queue.pop(0)
            number = self.study.ask_for(point)
        else:
            number, point = self.study.ask(self.sampler)
        folder = self.study.new_trial_folder(number)
        trial = RunningTrial(
            trial=number,
            point=point,
            attempt=self.study.attempts(point) + 1,
            started_at=self.launcher.now(),
            total_steps=self.plan.measurement.total_steps,
        )
        self.launcher.start(
            TrialRequest(
                trial=number,
                attempt=trial.attempt,
                folder=folder,
                program=self.trainer.trial_program(point, self.plan.measurement, folder),
                placement=self.plan.placement,
                deadlines=self.plan.deadlines,
            )
        )
        self._running[number] = trial
        self.listener.started(trial)

    def _finish(self, end: TrialEnd) -> None:
        trial = self._running.pop(end.trial)
        ranks = read_ranks(self.study.paths.trial(end.trial), self.plan.placement.world_size)
        record = TrialRecord(
            trial=end.trial,
            parameters=trial.point,
            outcome=judge(end, ranks, self.plan.judge, self._baseline_work()),
            cost_s=end.ended_at - end.started_at,
            started_at=end.started_at,
            ended_at=end.ended_at,
            attempt=trial.attempt,
            fingerprint=self.study.identity.fingerprint,
        )
        self.study.finish(record)
        if self._is_open_again(record):
            self._queue.append(trial.point)
        self.changed()
        self.listener.finished(record, self.progress())

    def _baseline_work(self) -> Work | None:
        record = record_of(self.study.records, self.study.space.baseline)
        return None if record is None else record.outcome.work

    def _with_steps(self, trial: RunningTrial) -> RunningTrial:
        folder = self.study.paths.trial(trial.trial)
        steps = steps_done(folder, self.plan.placement.world_size)
        return RunningTrial(
            trial.trial, trial.point, trial.attempt, trial.started_at, steps, trial.total_steps
        )


def is_hopeless(records: list[TrialRecord]) -> bool:
    """Whether the first trials, and no others, were made, and all failed for one reason."""
    reasons = {(record.status, record.outcome.reason) for record in records}
    lost = (Status.FAILED, Status.HUNG, Status.INFRASTRUCTURE)
    return (
        len(records) >= _HOPELESS_AFTER
        and len(reasons) == 1
        and all(record.status in lost for record in records)
    )
