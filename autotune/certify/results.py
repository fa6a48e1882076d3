"""All runs of a study, and what follows from them. Pure, and cheap enough to ask again."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from autotune.certify.contest import Contest
from autotune.certify.drift import Drift
from autotune.certify.settings import CertifySettings
from autotune.certify.standing import Standing, drift_of, learned_spread, standings
from autotune.measure.outcome import Status
from autotune.measure.racing import RaceRules
from autotune.measure.spread import RunSpread
from autotune.measure.work import other_losses
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord

# Rechecks may take this share of the device time of the trials, and a few are always made.
_LEAST_RECHECKS = 12
_RECHECKED_SHARE = 0.3
# So many of them may come while the search goes on; the rest is for who leads at its end.
_WHILE_SEARCHING = 2 / 3
# Of repeats that failed, or were lost, so many are believed.
_FAILURES = 2
_FIRST_LOOK = RaceRules.first_look


@dataclass(frozen=True)
class Results:
    """Trials and repeats of a study whose baseline is `baseline`."""

    records: Sequence[TrialRecord]
    repeats: Sequence[Repeat]
    baseline: Point
    settings: CertifySettings

    @cached_property
    def spread(self) -> RunSpread:
        """Between runs of one point, as far as it has been seen."""
        return learned_spread(self.records, self.repeats, self.settings.spread)

    @cached_property
    def drift(self) -> Drift:
        """Of the machine, from all runs of the baseline."""
        return self._drift(self.repeats)

    def _drift(self, repeats: Sequence[Repeat]) -> Drift:
        # At most the assumed spread: what runs of a drifting baseline teach would hide the drift.
        spread = learned_spread(self.records, repeats, self.settings.spread)
        noise = min(spread.relative_sd, self.settings.spread.relative_sd)
        return drift_of(self.records, repeats, self.baseline, noise)

    @cached_property
    def standings(self) -> list[Standing]:
        """Every measured point, the fastest first.

        Without the runs of contests: who takes part in one must not change while it goes on.
        """
        search = [repeat for repeat in self.repeats if repeat.role is not Role.CERTIFY]
        spread = learned_spread(self.records, search, self.settings.spread)
        return standings(self.records, search, self._drift(search), spread)

    @cached_property
    def baseline_standing(self) -> Standing | None:
        """The baseline's, once it has been measured."""
        return next((s for s in self.standings if s.point == self.baseline), None)

    @cached_property
    def best(self) -> Standing | None:
        """The fastest usable point that does the baseline's work, as measured so far."""
        return next(iter(self._eligible), None)

    def rejection(self, standing: Standing) -> str | None:
        """Why a measured point cannot be exported, None where it can.

        Its losses are compared with the baseline's, and its runs in a contest count as well.
        """
        again = [r.record for r in self.repeats if r.record.parameters == standing.point]
        failed = [r for r in again if r.status in (Status.FAILED, Status.HUNG)]
        fatal = [r for r in again if r.status.violates_memory] + failed[_FAILURES - 1 :]
        if fatal:
            outcome = fatal[0].outcome
            return f"measured again, it came to {outcome.status.value}: {outcome.reason}"
        if self.baseline_standing is None or standing.point == self.baseline:
            return None
        ours, theirs = standing.record.outcome.work, self.baseline_standing.record.outcome.work
        if ours is None or theirs is None:
            return None
        return other_losses(ours, theirs, self.settings.loss_tolerance)

    @cached_property
    def _eligible(self) -> list[Standing]:
        return [s for s in self.standings if s.is_usable and self.rejection(s) is None]

    @cached_property
    def rejected(self) -> list[tuple[Standing, str]]:
        """Usable points that are faster than the best and were rejected, with the reason."""
        best_s = self.best.time_s if self.best is not None else float("inf")
        found = []
        for standing in self.standings:
            reason = self.rejection(standing) if standing.time_s < best_s else None
            if reason is not None and standing.record.status is Status.OK:
                found.append((standing, reason))
        return found

    @property
    def may_recheck_while_searching(self) -> bool:
        """Whether a point may be measured once more before the search is over."""
        return len(self._rechecks) < _WHILE_SEARCHING * self._rechecks_allowed

    @cached_property
    def rechecked(self) -> set[Point]:
        """Points that were measured once more, whatever came of it."""
        return {repeat.record.parameters for repeat in self.repeats}

    @property
    def rechecks_left(self) -> int:
        """How many points are to be measured once more, as things stand."""
        return len(self.to_recheck)

    @property
    def to_recheck(self) -> list[Point]:
        """The fastest of the points within reach, as many as the settings allow."""
        return self.within_reach[: max(self._rechecks_allowed - len(self._rechecks), 0)]

    @cached_property
    def within_reach(self) -> list[Point]:
        """Points whose only run was not so slow that a bad moment cannot explain it.

        The fastest first.
        """
        if self.best is None:
            return []
        slowest = self.best.time_s * (1 + self.settings.recheck_within)
        runs = [repeat.record for repeat in self.repeats]
        tried = {self.baseline, *(r.parameters for r in runs if not r.status.may_retry)}
        lost = Counter(r.parameters for r in runs if r.status.may_retry)
        return [
            standing.point
            for standing in self.standings
            if standing is not self.best  # it runs again anyway
            and standing.time_s <= slowest
            and standing.record.status in (Status.OK, Status.STOPPED)
            and standing.point not in tried
            and lost[standing.point] < _FAILURES
            and self.rejection(standing) is None
        ]

    @cached_property
    def _rechecks(self) -> list[TrialRecord]:
        return [repeat.record for repeat in self.repeats if repeat.role is Role.RECHECK]

    @property
    def _rechecks_allowed(self) -> int:
        """How many rechecks there may be in all, as what they cost shows."""
        if self.settings.max_rechecks is not None:
            return self.settings.max_rechecks
        launched = [record for record in self.records if record.was_launched]
        costs = [record.cost_s for record in self._rechecks or launched]
        typical = statistics.fmean(costs) if costs else 0.0
        share = _RECHECKED_SHARE * sum(record.cost_s for record in self.records)
        return max(_LEAST_RECHECKS, int(share / typical) if typical > 0 else 0)

    @cached_property
    def step_noise(self) -> float | None:
        """Relative standard deviation of one step within a run.

        None before one was measured, and where runs warm up for longer than a first look takes.
        """
        if any(record.outcome.warmup_steps >= _FIRST_LOOK for record in self.records):
            return None  # first steps tell nothing here
        noises = [
            outcome.within_error_s / outcome.batch_time_s * math.sqrt(outcome.steps)
            for record in self.records
            if (outcome := record.outcome).within_error_s is not None
            and outcome.batch_time_s is not None
        ]
        return statistics.median(noises) if noises else None

    @cached_property
    def finalists(self) -> list[Standing]:
        """Who runs against the baseline: the best and who cannot be told from it."""
        rivals = [s for s in self._eligible if s.point != self.baseline]
        if not rivals:
            return []
        high = rivals[0].ci95_s[1] if rivals[0].ci95_s else float("inf")
        near = [s for s in rivals if s.ci95_s is None or s.ci95_s[0] <= high]
        return near[: self.settings.finalists]

    @cached_property
    def contest(self) -> Contest:
        """Of the baseline, where it can run, and the finalists."""
        base = self.baseline_standing
        runs = base is not None and base.is_usable and self.rejection(base) is None
        first = [self.baseline] if runs else []
        points = [*first, *(standing.point for standing in self.finalists)]
        return Contest.of(points, self.repeats, self.spread)


NextRun = tuple[Role, Point, int]
"""Why a point runs again, the point, and the round."""


def next_repeats(results: Results) -> list[NextRun]:
    """The runs that certification needs next, in their order; empty when it is through.

    None of them depends on another, so that they may go on side by side. First the points that
    deserve another look, then the contest, round by round.
    """
    settings = results.settings
    if not settings.enabled:
        return []
    again = results.to_recheck
    if again:
        return [(Role.RECHECK, point, 0) for point in again]
    runs = results.contest.next_runs(settings.rules)
    return [(Role.CERTIFY, point, number) for number, point in runs]


def next_repeat(results: Results) -> NextRun | None:
    """The first of `next_repeats`, None when certification is through."""
    return next(iter(next_repeats(results)), None)
