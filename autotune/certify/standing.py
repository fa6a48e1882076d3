"""What every point is known to take, from all its runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.certify.drift import Control, Drift
from autotune.measure.moments import is_moment
from autotune.measure.outcome import Status
from autotune.measure.spread import RunSpread
from autotune.measure.student import student_t_975
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord

# A run slower than the point's usual time by this, or by four spreads, was disturbed.
_LEAST_DISTURBED = 0.10
_DISTURBED_SPREADS = 4.0


@dataclass(frozen=True)
class Standing:
    """A measured point. record: its trial. runs: all its measured runs, the trial first.

    time_s: seconds for a batch, drift taken out and disturbed runs left out, with its 95 %
    interval. disturbed: how many runs were left out. is_usable: it ran to its end within the
    limit, and no run of it broke the limit.
    """

    record: TrialRecord
    runs: tuple[TrialRecord, ...]
    time_s: float
    ci95_s: tuple[float, float] | None
    disturbed: int
    is_usable: bool

    @property
    def point(self) -> Point:
        """The point."""
        return self.record.parameters


def standings(
    records: Sequence[TrialRecord], repeats: Sequence[Repeat], drift: Drift, spread: RunSpread
) -> list[Standing]:
    """Every measured point, the fastest first. Certification is looked at elsewhere."""
    further: dict[Point, list[TrialRecord]] = {}
    for repeat in repeats:
        if repeat.role is not Role.CERTIFY:
            further.setdefault(repeat.record.parameters, []).append(repeat.record)
    latest = {record.parameters: record for record in records}
    found = [
        standing
        for record in latest.values()
        if (standing := _standing(record, further.get(record.parameters, []), drift, spread))
    ]
    return sorted(found, key=lambda standing: (standing.time_s, standing.record.trial))


def _standing(
    record: TrialRecord, further: Iterable[TrialRecord], drift: Drift, spread: RunSpread
) -> Standing | None:
    every = (record, *further)
    runs = tuple(run for run in every if run.outcome.batch_time_s is not None)
    if not runs or record.outcome.batch_time_s is None:
        return None
    times = [steady_time(run, drift) for run in runs]
    kept = undisturbed(times, spread)
    mean = statistics.fmean(times[number] for number in kept)
    return Standing(
        record,
        runs,
        mean,
        _interval(mean, [runs[number] for number in kept], spread),
        len(runs) - len(kept),
        any(run.status is Status.OK for run in every)
        and not any(run.status.violates_memory for run in every),
    )


def steady_time(run: TrialRecord, drift: Drift) -> float:
    """A run's time as it would have been at the first control, in seconds."""
    assert run.outcome.batch_time_s is not None, "only measured runs have a time"
    return run.outcome.batch_time_s / drift.factor((run.started_at + run.ended_at) / 2)


def disturbed_from(spread: RunSpread) -> float:
    """How much slower than its point's fastest run a disturbed run is, as a share."""
    return max(_LEAST_DISTURBED, _DISTURBED_SPREADS * spread.relative_sd)


def undisturbed(times_s: Sequence[float], spread: RunSpread) -> list[int]:
    """Which of a point's runs count: those that took about as long as the fastest.

    What disturbs a run makes it slower, never faster, so the fastest run is the least
    disturbed one (Chen and Revels, Robust benchmarking in noisy environments, 2016); the mean
    is taken over all that differ from it by no more than separate runs do.
    """
    bound = min(times_s) * (1 + disturbed_from(spread))
    return [number for number, time in enumerate(times_s) if time <= bound]


def _interval(
    mean: float, runs: Sequence[TrialRecord], spread: RunSpread
) -> tuple[float, float] | None:
    errors = [run.outcome.within_error_s for run in runs]
    if any(error is None for error in errors):
        if len(runs) > 1:
            errors = [error or 0.0 for error in errors]
        else:
            return runs[0].outcome.batch_time_ci95_s
    variance = statistics.fmean((error or 0.0) ** 2 for error in errors)
    variance = (variance + (spread.relative_sd * mean) ** 2) / len(runs)
    half = student_t_975(max(spread.freedom, 1.0)) * math.sqrt(variance)
    return (max(mean - half, 0.0), mean + half)


def drift_of(
    records: Sequence[TrialRecord], repeats: Sequence[Repeat], baseline: Point, noise: float
) -> Drift:
    """From all runs of the baseline that were made here, at moments that are known."""
    runs = [record for record in records if record.taken_from is None]
    runs += [repeat.record for repeat in repeats]
    controls = [
        Control((run.started_at + run.ended_at) / 2, run.outcome.batch_time_s)
        for run in runs
        if run.parameters == baseline
        and run.outcome.batch_time_s is not None
        and is_moment(run.started_at)
        and is_moment(run.ended_at)
    ]
    return Drift(tuple(sorted(controls, key=lambda control: control.at)), noise)


def learned_spread(
    records: Sequence[TrialRecord], repeats: Sequence[Repeat], assumed: RunSpread
) -> RunSpread:
    """The spread between runs, from the points that ran more than once."""
    runs: dict[Point, list[float]] = {}
    every = [*records, *(repeat.record for repeat in repeats)]
    for run in sorted(every, key=lambda run: run.started_at):
        if run.outcome.batch_time_s is not None and run.status is not Status.STOPPED:
            runs.setdefault(run.parameters, []).append(run.outcome.batch_time_s)
    return assumed.learned(runs.values())
