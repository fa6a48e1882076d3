"""Expected improvement against its integral."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import norm

from autotune.search.guided.improvement import log_expected_improvement


def log_improvement(mean: float, deviation: float, best: float) -> float:
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), best)
    return float(found[0])


@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.9, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("deviation", [0.7, 1.0, 3.0])
def test_it_is_the_integral(mean: float, deviation: float) -> None:
    best = 1.0
    expected, _ = quad(
        lambda value: (best - value) * norm.pdf(value, mean, deviation),
        min(mean, best) - 12 * deviation,
        best,
        points=[mean] if mean < best else None,
        epsabs=0,
        epsrel=1e-10,
    )
    assert log_improvement(mean, deviation, best) == pytest.approx(np.log(expected), abs=1e-6)


@pytest.mark.parametrize("away", [6.5, 8.0, 12.0, 30.0, 300.0])
def test_far_above_the_best_it_is_still_the_logarithm(away: float) -> None:
    """Through the scaled complementary error function (Ament et al., 2023, equation 9)."""
    share = 1 - away * np.sqrt(np.pi / 2) * erfcx(away / np.sqrt(2))
    expected = norm.logpdf(away) + np.log(share)
    assert log_improvement(away, 1.0, 0.0) == pytest.approx(expected, abs=0.01)
    assert log_improvement(5 * away, 5.0, 0.0) == pytest.approx(expected + np.log(5), abs=0.01)


def test_what_is_farther_above_the_best_is_never_worth_more() -> None:
    steps = np.r_[np.linspace(-5, 5, 400), np.linspace(5.01, 7, 40_000), np.geomspace(8, 1e6, 400)]
    found = log_expected_improvement(steps, np.ones(len(steps)), 0.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("mean", [-1.0, 0.5, 1.0, 1.5, 3.0])
def test_what_is_less_certain_is_worth_more(mean: float) -> None:
    deviation = np.geomspace(1e-3, 10, 300)
    found = log_expected_improvement(np.full(300, mean), deviation, 1.0)
    assert (np.diff(found) > -1e-9).all()


def test_without_doubt_it_is_the_difference() -> None:
    assert log_improvement(0.25, 1e-6, 1.0) == pytest.approx(np.log(0.75))
