"""Weights learnt from runs, against planted ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.predict.calibrated import CalibratedModel

WEIGHTS = np.array([0.02, 0.005, 0.08, 0.01])


def planted(runs: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Terms of random sizes, and their weighted sums with relative errors."""
    generator = np.random.default_rng(seed)
    terms = generator.exponential(1.0, (runs, 4))
    errors = generator.normal(0.0, noise, runs) if noise else np.zeros(runs)
    return terms, terms @ WEIGHTS * np.exp(errors)


def test_planted_weights_are_recovered() -> None:
    terms, measured = planted(200, noise=0.01)
    model = CalibratedModel.fit(terms, measured, noise=0.01)
    assert model.weights == pytest.approx(WEIGHTS, rel=0.05)
    unseen, truth = planted(50, seed=1)
    assert model.predict(unseen) == pytest.approx(np.log(truth), abs=0.02)


def test_without_runs_the_prior_holds() -> None:
    prior = [1.0, 2.0, 0.1, 1.0]
    assert CalibratedModel.fit(np.empty((0, 4)), [], prior).weights == pytest.approx(prior)


def test_one_run_sets_the_scale() -> None:
    """A single run says how fast the machine is, and hardly which term is off."""
    model = CalibratedModel.fit([[1.0, 2.0, 3.0, 4.0]], [7.0], [1.0, 2.0, 3.0, 4.0])
    assert model.weights == pytest.approx(0.7 / 3 * np.array([1, 2, 3, 4]), rel=1e-6)


def test_fewer_runs_than_terms_stay_near_the_prior() -> None:
    terms, measured = planted(3)
    model = CalibratedModel.fit(terms, measured, WEIGHTS)
    assert model.weights == pytest.approx(WEIGHTS, rel=1e-6)


def test_a_term_that_never_varied_keeps_its_prior() -> None:
    terms, measured = planted(40)
    terms[:, 2] = 0.0
    measured = terms @ WEIGHTS
    model = CalibratedModel.fit(terms, measured, WEIGHTS)
    assert model.weights[2] == pytest.approx(WEIGHTS[2], rel=1e-6)


def test_disturbed_runs_count_for_little() -> None:
    """A tenth of the runs 1.7 times as slow move the others' prediction by less than 3 %."""
    terms, measured = planted(60, noise=0.005)
    measured[::10] *= 1.7
    model = CalibratedModel.fit(terms, measured, noise=0.02)
    unseen, truth = planted(50, seed=1)
    assert np.abs(model.predict(unseen) - np.log(truth)).max() < 0.03


def test_weights_are_the_most_probable_ones() -> None:
    """Against the posterior written down: Student-t errors with 4 degrees, normal log-weights."""
    terms, measured = planted(12, noise=0.2)
    prior, noise, trust = np.array([1.0, 2.0, 1.0, 0.5]), 0.2, 0.7

    def surprise(log_weights: np.ndarray) -> float:
        errors = (np.log(measured) - np.log(terms @ np.exp(log_weights))) / noise
        steps = log_weights - np.log(prior)
        # The scale is free: the best one takes the mean step.
        steps = (steps - steps.mean()) / trust
        return float((2.5 * np.log1p(errors**2 / 4)).sum() + (steps**2).sum() / 2)

    found = np.log(CalibratedModel.fit(terms, measured, prior, noise, trust).weights)
    generator = np.random.default_rng(3)
    for size in (0.3, 0.03, 0.003):
        for _ in range(50):
            assert surprise(found) <= surprise(found + generator.normal(0, size, 4))


def test_the_unit_does_not_matter() -> None:
    terms, measured = planted(10, noise=0.1)
    seconds = CalibratedModel.fit(terms, measured)
    nanoseconds = CalibratedModel.fit(terms, measured * 1e9)
    assert nanoseconds.weights == pytest.approx(seconds.weights * 1e9, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12))
def test_weights_are_above_zero_whatever_is_measured(seed: int, runs: int, terms: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.exponential(1.0, (runs, terms)) * generator.choice([0, 1, 1e6], terms)
    rows[:, 0] += 1e-3
    measured = np.exp(generator.normal(0.0, 3.0, runs))
    model = CalibratedModel.fit(rows, measured)
    assert (model.weights > 0).all()
    assert np.isfinite(model.predict(rows)).all()


@pytest.mark.parametrize(
    ("terms", "measured"),
    [([[1.0]], [0.0]), ([[1.0]], [1.0, 2.0]), ([[-1.0]], [1.0]), ([[0.0]], [1.0])],
)
def test_values_that_cannot_be_are_refused(terms: list[list[float]], measured: list[float]) -> None:
    with pytest.raises(ValueError, match=r"terms|measured"):
        CalibratedModel.fit(terms, measured)
