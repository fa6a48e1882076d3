"""Runs of points on the devices: launched, followed step by step, ended in time, judged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.errors import UserError
from autotune.measure.crosscheck import disagreement
from autotune.measure.judge import Evidence, JudgeSettings, is_over_limit, judge, measure_run
from autotune.measure.outcome import Outcome, Work
from autotune.measure.racing import Decision, RaceRules, decide
from autotune.measure.read import TrialFollower, Voices, read_logs
from autotune.measure.spread import RunSpread
from autotune.ports import (
    Deadlines,
    EndKind,
    Launcher,
    MeasurementPlan,
    Placement,
    Trainer,
    TrialEnd,
    TrialRequest,
)
from autotune.space.point import Point

log = logging.getLogger(__name__)

ProfileReader = Callable[[Path, float], dict[str, float] | None]
"""A trial's folder and its seconds a batch -> seconds by phase, None where no profile tells."""


@dataclass(frozen=True)
class Yardstick:
    """What a run is held against while it goes on, and when it has ended.

    incumbent_high_s: upper end of the interval of the best point, None where nothing is to be
    beaten. spread: between runs of one point. step_noise: relative standard deviation of one
    step. baseline_work: None where it is not known yet.
    """

    spread: RunSpread
    incumbent_high_s: float | None = None
    step_noise: float | None = None
    baseline_work: Work | None = None


@dataclass(frozen=True)
class RunOrder:
    """One run that is asked for. number: of its launch, which no other run has."""

    number: int
    point: Point
    attempt: int
    folder: Path
    plan: MeasurementPlan
    rules: RaceRules


@dataclass(frozen=True)
class RunResult:
    """A run that has ended."""

    order: RunOrder
    end: TrialEnd
    outcome: Outcome


@dataclass
class _Live:
    order: RunOrder
    follower: TrialFollower
    decision: Decision = Decision.GO_ON


@dataclass
class Runner:
    """Keeps runs on the devices and ends each as soon as its time is known.

    phases: reads a breakdown from a profile where the ranks recorded none. baseline: the user's
    present configuration.
    """

    launcher: Launcher
    trainer: Trainer
    placement: Placement
    deadlines: Deadlines
    judge: JudgeSettings
    phases: ProfileReader | None = None
    baseline: Point | None = None
    _live: dict[int, _Live] = field(default_factory=dict)

    @property
    def free_slots(self) -> int:
        """How many more runs the devices hold."""
        return self.launcher.slots - len(self._live)

    def start(self, order: RunOrder) -> None:
        """Launches a run and returns."""
        self.launcher.start(
            TrialRequest(
                trial=order.number,
                attempt=order.attempt,
                folder=order.folder,
                program=self.trainer.trial_program(order.point, order.plan, order.folder),
                placement=self.placement,
                deadlines=self.deadlines,
            )
        )
        voices = Voices(
            self.placement.world_size, self.placement.nodes, self.trainer.every_rank_records
        )
        follower = TrialFollower(order.folder, voices)
        self._live[order.number] = _Live(order, follower)

    def wait(self, timeout_s: float, yardstick: Yardstick) -> list[RunResult]:
        """The runs that ended, as soon as one has; those that need no more steps are ended."""
        ended = self.launcher.wait(timeout_s)
        results = [self._result(end, yardstick) for end in ended]
        for live in self._live.values():
            if live.follower.look() and live.decision is Decision.GO_ON:
                self._decide(live, yardstick)
        return results

    def steps(self, number: int) -> int:
        """How many steps a running trial has made."""
        live = self._live.get(number)
        return 0 if live is None else live.follower.steps

    def forget(self) -> None:
        """Drops the runs without a result; the caller closes the launcher."""
        self._live.clear()

    def _decide(self, live: _Live, held: Yardstick) -> None:
        ranks = live.follower.ranks
        run = measure_run(ranks, self.judge)
        if run is None:
            return
        over = is_over_limit(ranks, self.judge)
        live.decision = decide(
            run, live.order.rules, held.spread, held.incumbent_high_s, over, held.step_noise
        )
        if live.decision.ends_at_once or (
            live.decision is Decision.ENOUGH and not self.trainer.heeds_finish
        ):
            self.launcher.stop(live.order.number)
        elif live.decision is Decision.ENOUGH:
            self.launcher.finish(live.order.number)

    def _result(self, end: TrialEnd, held: Yardstick) -> RunResult:
        live = self._live.pop(end.trial)
        live.follower.look()
        settings = replace(self.judge, spread=held.spread)
        evidence = Evidence(
            read_logs(live.order.folder, self.placement.world_size)
            if end.kind is not EndKind.FINISHED or live.follower.steps < self.judge.min_steps
            else None,
            is_baseline=live.order.point == self.baseline and live.order.attempt == 1,
            note=disagreement(live.follower.ranks, live.follower.printed),
        )
        outcome = judge(
            end, live.follower.ranks, settings, held.baseline_work, live.decision, evidence
        )
        return RunResult(live.order, end, self._with_phases(outcome, live.order.folder))

    def _with_phases(self, outcome: Outcome, folder: Path) -> Outcome:
        if self.phases is None or outcome.breakdown_s is not None or outcome.batch_time_s is None:
            return outcome
        try:
            phases = self.phases(folder, outcome.batch_time_s)
        except (UserError, OSError) as error:  # a profile that cannot be read costs no result
            log.warning("the profile in %s cannot be read: %s", folder, error)
            return outcome
        return outcome if phases is None else replace(outcome, breakdown_s=phases)
