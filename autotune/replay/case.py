"""What is replayed, and the recorded table as a device that runs points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from autotune.certify.settings import CertifySettings
from autotune.measure.outcome import Outcome, Status
from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate
from autotune.replay.expectation import expected_best, expected_best_after
from autotune.replay.noise import RunNoise
from autotune.replay.outcomes import Floats
from autotune.replay.table import ReplayTable
from autotune.search.encoding import Encoding
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord


@dataclass(frozen=True)
class ReplayCase:
    """One comparison: the same for every sampler and seed.

    evaluations: launches of one run. baseline: the row that is planted as the first of them.
    limit_bytes: what samplers are told peaks against, None where no limit is known; then they
    are told no peaks either, only which points do not run.
    """

    table: ReplayTable
    evaluations: int
    baseline: int | None = None
    limit_bytes: int | None = None
    noise: RunNoise = field(default_factory=RunNoise)
    certify: CertifySettings = field(default_factory=CertifySettings)

    @cached_property
    def random_expectation_s(self) -> Floats:
        """By evaluation: what random search can expect, with the same baseline planted."""
        times = self.table.counted_s
        if self.baseline is None:
            return expected_best(times, self.evaluations)
        return expected_best_after(times, self.baseline, self.evaluations)


@dataclass(frozen=True)
class RecordedSpace:
    """The rows of a table as the legal points of a space."""

    table: ReplayTable
    baseline: int | None = None

    @cached_property
    def legal(self) -> LegalSpace:
        """The space. Without a planted baseline it has that of the study, or the first row."""
        row = self.baseline if self.baseline is not None else self.table.recorded_baseline
        baseline = self.table.point(row or 0)
        definition = SpaceDefinition(self.table.parameters, (), {}, dict(baseline))
        return LegalSpace.of_codes(definition, self.table.codes, baseline)

    @cached_property
    def encoding(self) -> Encoding:
        """The points as samplers see them."""
        return Encoding(self.legal)

    def row(self, point: Mapping[str, object]) -> int | None:
        """The row of a point, None where the table has none: an illegal point."""
        return self.legal.index_of(point)


@dataclass
class RecordedDevice:
    """Runs points as the table has them, one after the other, on a clock of its own."""

    case: ReplayCase
    space: RecordedSpace
    seed: int
    launches: int = 0
    now: float = 0.0

    def run(self, number: int, point: Point) -> TrialRecord:
        """One launch, recorded under `number`. A point that is not in the table fails."""
        row = self.space.row(point)
        outcome = Outcome(Status.FAILED, "not in the table") if row is None else self._outcome(row)
        begin, self.now = self.now, self.now + (1.0 if row is None else self._cost_s(row))
        self.launches += 1
        return TrialRecord(
            trial=number,
            parameters=point,
            outcome=outcome,
            cost_s=self.now - begin,
            started_at=begin,
            ended_at=self.now,
            attempt=1,
            fingerprint="replay",
        )

    def _cost_s(self, row: int) -> float:
        return float(self.case.table.cost_s[row])

    def _outcome(self, row: int) -> Outcome:
        table = self.case.table
        status, peak = table.status[row], _known(table.peak_bytes[row])
        told_peak = None if peak is None or self.case.limit_bytes is None else int(peak)
        time_s = _known(table.time_s[row])
        if time_s is None:
            return Outcome(status, "as recorded", peak_memory_bytes=told_peak)
        time_s *= self.case.noise.of_launch(self.seed, self.launches)
        return Outcome(
            status,
            "as recorded",
            batch_time_s=time_s,
            batch_time_ci95_s=_interval(time_s, self.case.certify.spread),
            steps=1,
            within_error_s=0.0,
            peak_memory_bytes=told_peak,
        )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(time_s: float, spread: RunSpread) -> tuple[float, float] | None:
    """Of one run that tells nothing of its own error: separate runs differ by the spread."""
    return interval95(RunEstimate(time_s, 0.0, 1, (0,)), spread)
