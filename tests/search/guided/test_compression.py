"""Slow times count less, and stay in order."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.guided.compression import Compression

LOGS = np.log(np.array([1.0, 1.2, 1.3, 1.5, 2.0, 8.0, 30.0]))


def test_up_to_the_bound_values_stay() -> None:
    compression = Compression.of(LOGS)
    below = np.linspace(LOGS.min() - 1, compression.bound, 50)
    assert compression(below) == pytest.approx(below)


def test_values_stay_in_order_and_continuous() -> None:
    compression = Compression.of(LOGS)
    steps = np.linspace(compression.bound - 1, compression.bound + 20, 20_000)
    found = compression(steps)
    assert (np.diff(found) > 0).all()
    assert (np.diff(found) <= np.diff(steps) + 1e-12).all()


def test_the_faster_half_stays_as_it_is() -> None:
    compression = Compression.of(LOGS)
    assert compression(LOGS[:4]) == pytest.approx(LOGS[:4])


def test_ten_times_as_slow_is_told_as_little_more() -> None:
    compression = Compression.of(LOGS)
    bound = np.array([compression.bound])
    slower = compression(bound + np.log(10)) - compression(bound)
    assert 0 < slower[0] < 0.3


@pytest.mark.parametrize("values", [np.zeros(1), np.full(9, 3.0), np.array([1.0, 5.0])])
def test_few_or_equal_values_have_a_bound(values: np.ndarray) -> None:
    compression = Compression.of(values)
    assert compression.bound > np.median(values)
    assert compression(values)[0] == values[0]
