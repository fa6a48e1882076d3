"""The estimate of a batch's time, against formulas and simulated runs."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest

from autotune.measure.student import student_t_975
from autotune.measure.timing import BatchTime, RunEstimate, estimate_run, speedup
from autotune.measure.warmup import TimedStep

# Student's t, 97.5 %: any table, such as NIST's e-Handbook 1.3.6.7.2.
T_TABLE = {1: 12.706, 4: 2.776, 10: 2.228, 11: 2.201, 12: 2.179, 20: 2.086, 30: 2.042, 120: 1.980}


def run(times: Sequence[float], window: int = 1) -> RunEstimate:
    return estimate_run([TimedStep(n, n % window, t) for n, t in enumerate(times)], window)


@pytest.mark.parametrize(("freedom", "quantile"), T_TABLE.items())
def test_students_t(freedom: int, quantile: float) -> None:
    assert student_t_975(freedom) == pytest.approx(quantile, abs=6e-4)


def test_students_t_between_whole_numbers() -> None:
    values = [student_t_975(1 + n / 20) for n in range(400)]
    assert values == sorted(values, reverse=True)


def test_without_a_window_it_is_the_textbook_error() -> None:
    times = [1.0, 1.02, 0.99, 1.01, 1.03]
    estimate = run(times)
    assert estimate.mean_s == pytest.approx(1.01)
    assert estimate.error_s == pytest.approx(statistics.stdev(times) / math.sqrt(5), rel=1e-3)
    assert estimate.freedom == 4


def test_batches_of_different_length_are_no_noise() -> None:
    """A window of a short and a long batch, measured without any noise, is known exactly."""
    estimate = run([1.0, 3.0] * 4, window=2)
    assert (estimate.mean_s, estimate.error_s) == (2.0, 0.0)


def test_every_batch_counts_alike_however_often_it_ran() -> None:
    assert run([1.0, 3.0, 1.0, 3.0, 1.0], window=2).mean_s == 2.0


def test_one_pass_gives_no_error() -> None:
    estimate = run([1.0, 3.0], window=2)
    assert estimate.error_s is None
    assert estimate.relative_half_width == math.inf


def test_a_batch_that_never_ran_is_an_error() -> None:
    with pytest.raises(ValueError, match="data window of 4"):
        run([1.0, 1.0], window=4)


@pytest.mark.parametrize("slow", [1.3, 2.0, 50.0])
@pytest.mark.parametrize("place", [0, 7, 11])
def test_one_slow_step_changes_nothing(slow: float, place: int) -> None:
    draw = random.Random(3)
    times = [draw.gauss(1.0, 0.01) * (1 + n % 2) for n in range(12)]
    disturbed = [t * (slow if n == place else 1) for n, t in enumerate(times)]
    estimate = run(disturbed, window=2)
    assert estimate.slow_steps == 1
    assert estimate.mean_s == pytest.approx(run(times, window=2).mean_s, rel=0.01)


def test_what_comes_every_few_steps_belongs_to_the_training() -> None:
    estimate = run([0.9, 0.9, 0.9, 2.0] * 4)
    assert (estimate.slow_steps, estimate.mean_s) == (0, pytest.approx(1.175))


def test_slowness_of_half_the_steps_is_no_outlier_but_a_wide_interval() -> None:
    estimate = run([1.0, 1.3] * 8)
    assert estimate.slow_steps == 0
    assert estimate.mean_s == pytest.approx(1.15)
    assert estimate.relative_half_width > 0.05


def test_a_machine_that_is_slower_for_a_while_widens_the_interval() -> None:
    """The same steps, once shuffled and once in stretches: only the stretches are doubtful."""
    slower = [1.0 + 0.05 * (n // 8 % 2) + 0.001 * (n % 3) for n in range(32)]
    shuffled = slower[:]
    random.Random(0).shuffle(shuffled)
    assert run(slower).relative_half_width > 1.5 * run(shuffled).relative_half_width


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Simulated windows of four batches: 95 % of the intervals hold the true mean, +- 2 %."""
    draw, true = random.Random(0), [0.8, 1.0, 1.5, 0.7]
    covered = 0
    for _ in range(2000):
        estimate = run([draw.gauss(mean, 0.03 * mean) for _ in range(3) for mean in true], 4)
        half = estimate.relative_half_width * estimate.mean_s
        covered += abs(estimate.mean_s - statistics.fmean(true)) <= half
    assert 0.93 < covered / 2000 < 0.97


def test_speedup_of_two_noisy_times() -> None:
    gain = speedup(BatchTime(2.0, (1.9, 2.1), 8), BatchTime(1.0, (0.95, 1.05), 8))
    assert gain.ratio == 2.0
    assert gain.ci95 is not None
    low, high = gain.ci95
    # Both are known to 5 %, so the ratio is known to 5 % times the square root of two.
    assert math.log(high / 2.0) == pytest.approx(0.05 * math.sqrt(2))
    assert low * high == pytest.approx(4.0)
