"""Trials and repeats on the devices: from a point to a kept result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from autotune.certify.results import Results
from autotune.measure.outcome import Work
from autotune.measure.racing import RaceRules
from autotune.ports import MeasurementPlan
from autotune.profile_plan import ProfilePlan
from autotune.space.point import Point
from autotune.study.profiles import ProfileBudget
from autotune.study.repeat import FIRST_LAUNCH, Repeat, Role
from autotune.study.study import Study
from autotune.study.trial_record import GateNote, TrialRecord
from autotune.sweep.plan import SweepPlan
from autotune.sweep.progress import Listener, RunningTrial
from autotune.sweep.runner import Runner, RunOrder, RunResult, Yardstick

_CONTEST_PRECISION = 0.10
_CONFIRMS_SHARE = 0.92
_CONTEST_GUESS = 3  # entrants, before the finalists are known


@dataclass
class Bench:
    """Starts runs of points, follows them, and keeps what they come to in the study."""

    study: Study
    runner: Runner
    plan: SweepPlan
    listener: Listener
    budget: ProfileBudget
    _running: dict[int, RunningTrial] = field(default_factory=dict)
    _contest_key: str = ""
    _results: Results | None = None
    _rechecks: bool = True

    @property
    def results(self) -> Results:
        """All runs of the study so far."""
        study = self.study
        if self._results is None or (len(study.records), len(study.repeats)) != (
            len(self._results.records),
            len(self._results.repeats),
        ):
            self._results = Results(
                tuple(study.records),
                tuple(study.repeats),
                study.space.baseline,
                self.plan.certify if self._rechecks else replace(self.plan.certify, max_rechecks=0),
            )
        return self._results

    def give_up_rechecks(self) -> None:
        """No measured point is worth another look any more: the contest is next."""
        self._rechecks, self._results = False, None

    @property
    def running(self) -> tuple[RunningTrial, ...]:
        """The runs on the devices, with the steps that they have made."""
        return tuple(
            replace(trial, steps=self.runner.steps(number))
            for number, trial in self._running.items()
        )

    @property
    def free_slots(self) -> int:
        """How many more runs the devices hold."""
        return self.runner.free_slots

    def _yardstick(self) -> Yardstick:
        """What running trials are held against now."""
        results = self.results
        best, base = results.best, results.baseline_standing
        high = None
        if best is not None and best.ci95_s is not None:
            high = best.ci95_s[1] * results.drift.factor(self.runner.launcher.now())
        work: Work | None = None if base is None else base.record.outcome.work
        return Yardstick(results.spread, high, results.step_noise, work)

    def start_trial(self, number: int, point: Point, note: GateNote | None = None) -> None:
        """Launches a trial of a point. note: what the memory gate expects of it."""
        is_baseline = point == self.study.space.baseline
        profiles, attempt = self.plan.profiles, self.study.attempts(point) + 1
        self._start(
            RunOrder(
                number=number,
                point=point,
                attempt=attempt,
                folder=self.study.new_trial_folder(number),
                plan=self._measurement(profiles.full if is_baseline else profiles.light),
                # Everything is compared with the baseline, so it is measured to the end.
                rules=replace(self.plan.race, drop_losers=False) if is_baseline else self.plan.race,
            ),
            RunningTrial(number, point, attempt, 0.0, note=note),
        )

    def start_repeat(self, role: Role, point: Point, round_: int) -> None:
        """Launches another run of a measured point."""
        kept = [repeat.number for repeat in self.study.repeats]
        running = [trial.trial for trial in self._running.values() if trial.role is not None]
        number = 1 + max([*kept, *running], default=-1)
        self._contest_key = self.results.contest.key if role is Role.CERTIFY else ""
        full = self.plan.profiles.full if role is Role.CERTIFY and round_ == 0 else None
        self._start(
            RunOrder(
                number=FIRST_LAUNCH + number,
                point=point,
                attempt=1,
                folder=self.study.new_repeat_folder(number),
                plan=self._measurement(full),
                rules=self._repeat_rules(role, point),
            ),
            RunningTrial(number, point, 1, 0.0, role=role, round=round_),
        )

    def _repeat_rules(self, role: Role, point: Point) -> RaceRules:
        # A recheck is over as soon as it is clear that the point is no faster than it was.
        if role is Role.RECHECK:
            known = next((s.time_s for s in self.results.standings if s.point == point), None)
            confirms_s = None if known is None else _CONFIRMS_SHARE * known
            return replace(self.plan.race, warm_up_share=0.0, confirms_s=confirms_s)
        # Of many runs none needs to be precise, but one that still warms up is no run.
        precision = max(self.plan.race.precision, _CONTEST_PRECISION)
        return replace(self.plan.race, drop_losers=False, precision=precision)

    def _measurement(self, profile: ProfilePlan | None) -> MeasurementPlan:
        return self.plan.with_profile(None if self.budget.is_used_up else profile)

    def _start(self, order: RunOrder, trial: RunningTrial) -> None:
        self.runner.start(order)
        shown = replace(
            trial, started_at=self.runner.launcher.now(), total_steps=order.plan.total_steps
        )
        self._running[order.number] = shown
        self.listener.started(shown)

    def wait(self, timeout_s: float) -> list[TrialRecord | Repeat]:
        """What ended and is kept, as soon as something has."""
        return [self._keep(result) for result in self.runner.wait(timeout_s, self._yardstick())]

    def forget(self) -> None:
        """Drops the runs without a result."""
        self._running.clear()
        self.runner.forget()

    def _keep(self, result: RunResult) -> TrialRecord | Repeat:
        trial = self._running.pop(result.order.number)
        failure = result.outcome.failure
        if failure is not None and failure.is_of_device:
            self.runner.launcher.suspect(result.order.number, failure.rank)
        record = TrialRecord(
            trial=trial.trial,
            parameters=trial.point,
            outcome=result.outcome,
            cost_s=max(result.end.ended_at - result.end.started_at, 0.0),
            started_at=result.end.started_at,
            ended_at=result.end.ended_at,
            attempt=trial.attempt,
            fingerprint=self.study.identity.fingerprint,
            gate=trial.note,
        )
        if trial.role is None:
            self.study.finish(record)
            kept: TrialRecord | Repeat = record
        else:
            contest = self._contest_key if trial.role is Role.CERTIFY else ""
            kept = Repeat(trial.role, record, contest, trial.round)
            self.study.keep_repeat(kept)
        self._make_room()
        return kept

    def _make_room(self) -> None:
        best = self.results.best
        keep = {self.study.space.baseline} | ({best.point} if best is not None else set())
        for message in self.budget.make_room(self.study.records, keep):
            self.listener.said(message)

    def turns_left(self, trials_left: int, slots: int) -> int:
        """About how many repeats are still to come one after the other, for an estimate of time.

        While the search goes on nobody knows how many finalists there will be. slots: runs that
        go on side by side.
        """
        if not self.plan.certify.enabled or self.results.best is None:
            return 0
        rechecks = self.results.rechecks_left / slots
        return math.ceil(self.contest_turns(trials_left, slots) + rechecks)

    def contest_turns(self, trials_left: int, slots: int) -> float:
        """Of these, those of the contest's least number of rounds."""
        settings, results = self.plan.certify, self.results
        if not settings.enabled or results.best is None:
            return 0.0
        contest = results.contest
        entrants = max(len(contest.points), _CONTEST_GUESS) if trials_left else len(contest.points)
        done = sum(len(runs) for runs in contest.runs.values())
        of_contest = settings.rules.min_rounds * entrants - done if entrants > 1 else 0
        return max(of_contest, 0) / min(slots, max(entrants, 1))
