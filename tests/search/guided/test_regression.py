"""Gaussian process regression against the textbook's formula."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.guided.geometry import Floats, Geometry
from autotune.search.guided.kernel import Amplitudes, Kernel
from autotune.search.guided.regression import Regression
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of({"size": ladder(6), "kind": kinds(3), "depth": ladder(4, when="size > 1")})
KERNEL = Kernel(
    Geometry.of(SPACE.parameters),
    np.array([0.5, 1.0, 0.8]),
    Amplitudes(constant=1.0, slope=0.2, main=0.7, pair=0.4, joint=0.4),
)


@pytest.fixture
def measured() -> tuple[np.ndarray, Floats, Floats]:
    """15 rows, their values and their noise variances."""
    generator = np.random.default_rng(3)
    rows = SPACE.codes[generator.permutation(len(SPACE.codes))[:15]]
    return rows, generator.normal(size=15), generator.uniform(0.01, 0.3, size=15)


def test_mean_and_variance_are_those_of_the_textbook(
    measured: tuple[np.ndarray, Floats, Floats],
) -> None:
    """Equations 2.25 and 2.26 of Rasmussen and Williams."""
    rows, values, noise = measured
    inner = KERNEL.cross(rows, rows) + np.diag(noise)
    cross = KERNEL.cross(SPACE.codes, rows)
    explained = cross @ np.linalg.solve(inner, cross.T)
    mean, variance = Regression.of(KERNEL, rows, values, noise).predict(SPACE.codes)
    assert mean == pytest.approx(cross @ np.linalg.solve(inner, values), abs=1e-5)
    expected = np.diag(KERNEL.cross(SPACE.codes, SPACE.codes)) - np.diag(explained)
    assert variance == pytest.approx(expected, abs=1e-5)


def test_a_value_without_noise_is_kept_and_certain(
    measured: tuple[np.ndarray, Floats, Floats],
) -> None:
    rows, values, _ = measured
    mean, variance = Regression.of(KERNEL, rows, values, np.zeros(15)).predict(rows)
    assert mean == pytest.approx(values, abs=1e-3)
    assert (variance < 1e-6).all()
    assert (variance > 0).all()


def test_left_out_is_what_the_others_say(measured: tuple[np.ndarray, Floats, Floats]) -> None:
    rows, values, noise = measured
    mean, variance = Regression.of(KERNEL, rows, values, noise).left_out(values)
    for number in range(15):
        others = np.arange(15) != number
        rest = Regression.of(KERNEL, rows[others], values[others], noise[others])
        expected, spread = rest.predict(rows[number : number + 1])
        assert mean[number] == pytest.approx(expected[0], abs=1e-4)
        assert variance[number] == pytest.approx(spread[0] + noise[number], abs=1e-4)


def test_the_same_point_measured_twice_is_known_better() -> None:
    once = Regression.of(KERNEL, SPACE.codes[:1], np.array([1.0]), np.array([0.1]))
    twice = Regression.of(KERNEL, SPACE.codes[[0, 0]], np.array([1.0, 1.0]), np.full(2, 0.1))
    (one_mean, one_variance), (mean, variance) = (r.predict(SPACE.codes[:1]) for r in (once, twice))
    assert one_mean[0] < mean[0] < 1.0
    assert variance[0] < one_variance[0]
