"""The expectation of random search, against every order there is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.replay.expectation import expected_best, expected_best_after

TIMES = st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0]), min_size=1, max_size=6)


@given(TIMES)
@settings(max_examples=40, deadline=None)
def test_it_is_the_mean_over_all_permutations(times: list[float]) -> None:
    orders = np.array(list(itertools.permutations(times)))
    brute = np.minimum.accumulate(orders, axis=1).mean(axis=0)
    np.testing.assert_allclose(expected_best(np.array(times), len(times)), brute, rtol=1e-12)


@given(TIMES.filter(lambda times: len(times) > 1))
@settings(max_examples=40, deadline=None)
def test_with_a_planted_baseline_it_is_that_over_all_orders_of_the_others(
    times: list[float],
) -> None:
    orders = np.array([[times[0], *rest] for rest in itertools.permutations(times[1:])])
    brute = np.minimum.accumulate(orders, axis=1).mean(axis=0)
    found = expected_best_after(np.array(times), 0, len(times))
    np.testing.assert_allclose(found, brute, rtol=1e-12)


def test_it_is_exact_for_many_rows() -> None:
    """With binomial coefficients in whole numbers, which know no rounding."""
    times = np.arange(1.0, 5001.0)
    found = expected_best(times, 2500)
    for draws in (1, 2, 100, 2500):
        # The mean least of i numbers drawn from 1..N is (N + 1) / (i + 1).
        assert found[draws - 1] == pytest.approx(5001 / (draws + 1), rel=1e-10)
    values = np.array([1.0] + [9.0] * 4999)
    missed = math.comb(4999, 50) / math.comb(5000, 50)
    assert expected_best(values, 50)[-1] == pytest.approx(1 + 8 * missed, rel=1e-12)
