"""The estimate of a batch's time, against formulas and simulated runs."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from autotune.measure.timing import BatchTime, estimate_batch_time, speedup, student_t_975

# Student's t, 97.5 %: any table, such as NIST's e-Handbook 1.3.6.7.2.
T_TABLE = {1: 12.706, 4: 2.776, 10: 2.228, 11: 2.201, 12: 2.179, 20: 2.086, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize(("freedom", "quantile"), T_TABLE.items())
def test_students_t(freedom: int, quantile: float) -> None:
    assert student_t_975(freedom) == pytest.approx(quantile, abs=6e-4)


def test_without_a_window_it_is_the_textbook_interval() -> None:
    times = [1.0, 1.2, 0.9, 1.1, 1.3]
    half = 2.776 * statistics.stdev(times) / math.sqrt(5)
    estimate = estimate_batch_time(times)
    assert estimate.mean_s == pytest.approx(1.1)
    assert estimate.ci95_s == pytest.approx((1.1 - half, 1.1 + half), rel=1e-3)


def test_batches_of_different_length_are_no_noise() -> None:
    """A window of a short and a long batch, measured without any noise, is known exactly."""
    estimate = estimate_batch_time([1.0, 3.0] * 4, window_steps=2)
    assert estimate.mean_s == 2.0
    assert estimate.ci95_s == (2.0, 2.0)


def test_an_unfinished_pass_is_left_out() -> None:
    estimate = estimate_batch_time([1.0, 3.0, 1.0, 3.0, 1.0], window_steps=2)
    assert (estimate.mean_s, estimate.steps) == (2.0, 4)


def test_one_pass_gives_no_interval() -> None:
    assert estimate_batch_time([1.0, 3.0], window_steps=2).ci95_s is None


def test_less_than_a_window_is_an_error() -> None:
    with pytest.raises(ValueError, match="data window of 4"):
        estimate_batch_time([1.0], window_steps=4)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Simulated windows of four batches: 95 % of the intervals hold the true mean, +- 2 %."""
    draw, true = random.Random(0), [0.8, 1.0, 1.5, 0.7]
    covered = 0
    for _ in range(2000):
        times = [draw.gauss(mean, 0.05) for _ in range(3) for mean in true]
        low, high = estimate_batch_time(times, window_steps=4).ci95_s or (0.0, 0.0)
        covered += low <= statistics.fmean(true) <= high
    assert 0.93 < covered / 2000 < 0.97


def test_speedup_of_two_noisy_times() -> None:
    gain = speedup(BatchTime(2.0, (1.9, 2.1), 8), BatchTime(1.0, (0.95, 1.05), 8))
    assert gain.ratio == 2.0
    assert gain.ci95 is not None
    low, high = gain.ci95
    # Both are known to 5 %, so the ratio is known to 5 % times the square root of two.
    assert math.log(high / 2.0) == pytest.approx(0.05 * math.sqrt(2))
    assert low * high == pytest.approx(4.0)
