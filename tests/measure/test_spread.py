"""Intervals that hold for the point, not only for the run."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate, estimate_run
from autotune.measure.warmup import TimedStep


def test_intervals_of_separate_runs_hold_the_mean_of_all() -> None:
    """Runs that differ by 2 % with steps that differ by 3 %: 95 % of the intervals, +- 3 %."""
    draw = random.Random(0)
    covered = naive = 0
    for _ in range(1000):
        centre = draw.gauss(1.0, 0.02)
        steps = [TimedStep(n, 0, draw.gauss(centre, 0.03)) for n in range(12)]
        run = estimate_run(steps)
        low, high = interval95(run, RunSpread(0.02)) or (0.0, 0.0)
        covered += low <= 1.0 <= high
        naive += abs(run.mean_s - 1.0) <= run.relative_half_width
    assert covered / 1000 > 0.94
    assert naive / 1000 < 0.80  # without the spread between runs they would not hold


def test_without_spread_it_is_the_interval_of_the_run() -> None:
    run = RunEstimate(1.0, 0.1, 10, tuple(range(11)))
    low, high = interval95(run, RunSpread(0.0)) or (0.0, 0.0)
    assert (high - low) / 2 == pytest.approx(2.2281 * 0.1, rel=1e-3)


def test_a_run_too_short_for_an_error_has_no_interval() -> None:
    assert interval95(RunEstimate(1.0, None, 0, (0,)), RunSpread(0.02)) is None


def test_many_repeats_outweigh_the_assumption() -> None:
    draw = random.Random(1)
    groups = [[10.0 * math.exp(draw.gauss(0, 0.005)) for _ in range(5)] for _ in range(40)]
    learned = RunSpread(0.02).learned(groups)
    assert learned.relative_sd == pytest.approx(0.005, rel=0.25)
    assert learned.freedom == pytest.approx(4 + 160 * 2 / 3)


def test_a_machine_that_drifts_is_not_a_noisy_one() -> None:
    drifting = [1.0 * 1.01**n for n in range(10)]
    assert statistics.stdev(drifting) > 0.02
    assert RunSpread(0.02, 0.001).learned([drifting]).relative_sd < 0.008


def test_single_runs_teach_nothing() -> None:
    assert RunSpread(0.02).learned([[1.0], [3.0]]) == RunSpread(0.02)


def test_a_run_in_a_bad_moment_does_not_make_every_interval_useless() -> None:
    learned = RunSpread(0.02).learned([[1.0, 1.3], [2.0, 2.01]])
    assert learned.relative_sd < 0.04
    assert statistics.stdev([1.0, 1.3]) > 0.2
