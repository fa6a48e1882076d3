"""What is exported, and what it is worth."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from autotune.certify.results import Results
from autotune.certify.standing import Standing
from autotune.measure.spread import RunSpread
from autotune.measure.student import student_t_975
from autotune.measure.timing import BatchTime, Speedup, speedup
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord

_LEAST_RUNS = 3


@dataclass(frozen=True)
class Measured:
    """A point and what is known of it. record: its trial; runs: all runs behind `time`.

    disturbed: runs that were left out. speedup: against the baseline, None where it has no
    time.
    """

    record: TrialRecord
    time: BatchTime
    runs: int
    disturbed: int
    speedup: Speedup | None

    @property
    def point(self) -> Point:
        """The point."""
        return self.record.parameters


@dataclass(frozen=True)
class Verdict:
    """winner: what is exported. challenger: the fastest point that is not the baseline, and
    the one whose speed-up `gain` is; the winner unless the baseline is kept.

    certified: winner and baseline were run again in turns, at least three times each, and no
    more than half of the runs were disturbed. rounds: how often. finalists: all that ran.
    """  # noqa: D205 (the fields are the summary)

    winner: Measured
    challenger: Measured | None
    baseline: Measured | None
    gain: Speedup | None
    keep_baseline: bool
    certified: bool
    rounds: int
    finalists: tuple[Measured, ...] = ()


def verdict_of(results: Results) -> Verdict | None:
    """The verdict so far, None while no usable point has been measured.

    A contest speaks once its first rounds are through: one of them knows less than the trials do.
    Where the time ends it before it is decided, the interval says how much is known.
    """
    best = results.best
    if best is None:
        return None
    contest = results.contest
    has_run = contest.points and all(contest.times(point) for point in contest.points)
    if has_run and contest.speaks(results.settings.rules):
        return _of_contest(results)
    return _of_trials(results, best)


def _of_trials(results: Results, best: Standing) -> Verdict:
    """Before certification: the fastest trial, each point by its own interval."""
    base = results.baseline_standing
    usable = base if base is not None and base.is_usable else None
    baseline = None if base is None else _measured(base, base, usable)
    winner = _measured(best, base, usable)
    is_baseline = best.point == results.baseline
    gain = Speedup(1.0, (1.0, 1.0)) if is_baseline else winner.speedup
    unclear = gain is not None and (gain.ci95 is None or gain.ci95[0] <= 1)
    rivals = [s for s in results.finalists if s.point != results.baseline]
    challenger = _measured(rivals[0], base, usable) if rivals else None
    return Verdict(winner, challenger, baseline, gain, is_baseline or unclear, False, 0)


def _measured(standing: Standing, base: Standing | None, usable: Standing | None) -> Measured:
    time = _time_of(standing)
    versus = None if usable is None else speedup(_time_of(usable), time)
    if standing is base and usable is not None:
        versus = Speedup(1.0, (1.0, 1.0))
    runs = len(standing.runs) - standing.disturbed
    return Measured(standing.record, time, runs, standing.disturbed, versus)


def _time_of(standing: Standing) -> BatchTime:
    # A single run is told as its line in trials.jsonl tells it.
    steps = sum(run.outcome.steps for run in standing.runs)
    own = standing.record.batch_time
    if len(standing.runs) == 1 and own is not None:
        return own
    return BatchTime(standing.time_s, standing.ci95_s, steps)


def _of_contest(results: Results) -> Verdict:
    contest = results.contest
    records = {standing.point: standing.record for standing in results.standings}
    entrants = [_entrant(results, records[point]) for point in contest.points]
    by_point = {entrant.point: entrant for entrant in entrants}
    baseline = by_point.get(results.baseline)
    rivals = [entrant for entrant in entrants if entrant is not baseline]
    leader = by_point[contest.leader()]
    challenger = leader if leader is not baseline else _fastest(rivals)
    gain = challenger.speedup if challenger is not None else None
    keep = baseline is not None and (gain is None or gain.ci95 is None or gain.ci95[0] <= 1)
    winner = baseline if keep and baseline is not None else leader
    deciding = [e for e in (baseline, challenger) if e is not None]
    certified = all(entrant.runs >= max(_LEAST_RUNS, entrant.disturbed) for entrant in deciding)
    rounds = max(len(contest.runs[point]) for point in contest.points)
    if baseline is None and results.baseline_standing is not None:
        baseline = _measured(results.baseline_standing, results.baseline_standing, None)
    return Verdict(winner, challenger, baseline, gain, keep, certified, rounds, tuple(entrants))


def _fastest(entrants: list[Measured]) -> Measured | None:
    return max(entrants, key=lambda e: e.speedup.ratio if e.speedup else 0.0, default=None)


def _entrant(results: Results, record: TrialRecord) -> Measured:
    contest, point = results.contest, record.parameters
    times = contest.times(point)
    steps = sum(contest.runs[point][number].record.outcome.steps for number in times)
    versus = None
    if contest.points[0] == results.baseline:
        versus = contest.ratio(results.baseline, point)
        if point == results.baseline:
            versus = Speedup(1.0, (1.0, 1.0))
    return Measured(
        record,
        _mean_of_runs(list(times.values()), steps, results.spread),
        len(times),
        len(contest.runs[point]) - len(times),
        versus,
    )


def _mean_of_runs(times_s: list[float], steps: int, spread: RunSpread) -> BatchTime:
    """The mean of separate runs with its 95 % interval, from what runs differ by."""
    mean = statistics.fmean(times_s)
    if len(times_s) < 2:
        half = student_t_975(max(spread.freedom, 1.0)) * spread.relative_sd * mean
    else:
        error = statistics.stdev(times_s) / math.sqrt(len(times_s))
        half = student_t_975(len(times_s) - 1) * error
    return BatchTime(mean, (max(mean - half, 0.0), mean + half), steps)
