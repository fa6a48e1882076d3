"""The most probable kernel: its evidence, the gradient of that, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from autotune.search.guided.fit import KernelPrior, _Evidence, fit_kernel
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.kernel import Amplitudes, Kernel
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of(
    {"size": ladder(6), "kind": kinds(3), "depth": ladder(4, when="size > 1"), "idle": ladder(5)}
)
GEOMETRY = Geometry.of(SPACE.parameters)
PRIOR = KernelPrior(
    length=0.8,
    amplitudes=Amplitudes(constant=0.9, slope=0.3, main=0.6, pair=0.4, joint=0.5),
    noise=0.1,
)
UNKNOWN = GEOMETRY.parameters + 4


def some(count: int, seed: int = 0) -> tuple[Codes, np.random.Generator]:
    generator = np.random.default_rng(seed)
    return SPACE.codes[generator.permutation(len(SPACE.codes))[:count]], generator


def middle_and_spread() -> tuple[Floats, Floats]:
    size = PRIOR.amplitudes
    medians = [PRIOR.length] * GEOMETRY.parameters + [size.main, size.pair, size.joint, PRIOR.noise]
    spreads = [PRIOR.length_spread] * GEOMETRY.parameters + [PRIOR.amplitude_spread] * 3
    return np.log(medians), np.array([*spreads, PRIOR.noise_spread])


def evidence(rows: Codes, values: Floats, scale: Floats) -> _Evidence:
    return _Evidence(GEOMETRY, rows, values, scale, PRIOR, *middle_and_spread())


def loss_by_formula(rows: Codes, values: Floats, scale: Floats, point: Floats) -> float:
    """Minus the logarithm of density of the values times that of the prior."""
    lengths, (main, pair, joint, noise) = np.exp(point[:-4]), np.exp(point[-4:])
    size = PRIOR.amplitudes
    kernel = Kernel(GEOMETRY, lengths, Amplitudes(size.constant, size.slope, main, pair, joint))
    covariance = kernel.cross(rows, rows) + np.diag(noise**2 * scale)
    middle, spread = middle_and_spread()
    density = multivariate_normal.logpdf(values, np.zeros(len(values)), covariance)
    return float(-density + 0.5 * (((point - middle) / spread) ** 2).sum())


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_minus_the_logarithm_of_the_posterior(seed: int) -> None:
    rows, generator = some(20, seed)
    values, scale = generator.normal(size=20), generator.uniform(1, 9, size=20)
    middle, spread = middle_and_spread()
    here, there = (middle + spread * generator.normal(size=UNKNOWN) for _ in range(2))
    told = evidence(rows, values, scale)
    expected = loss_by_formula(rows, values, scale, here) - loss_by_formula(
        rows, values, scale, there
    )
    assert told(here)[0] - told(there)[0] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_that_of_finite_differences(seed: int) -> None:
    rows, generator = some(25, seed)
    told = evidence(rows, generator.normal(size=25), generator.uniform(1, 9, size=25))
    middle, spread = middle_and_spread()
    point = middle + spread * generator.normal(size=UNKNOWN)
    step = 1e-5
    differences = [
        (told(point + step * unit)[0] - told(point - step * unit)[0]) / (2 * step)
        for unit in np.eye(UNKNOWN)
    ]
    assert told(point)[1] == pytest.approx(np.array(differences), rel=1e-4, abs=1e-4)


def fit(rows: Codes, values: Floats, scale: Floats | None = None) -> tuple[Floats, float]:
    """The lengths and the noise that are found."""
    usual = np.ones(len(rows)) if scale is None else scale
    found = fit_kernel(GEOMETRY, rows, values - values.mean(), usual, PRIOR)
    return found.kernel.lengths, found.noise


@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_the_noise_that_was_planted_is_found(noise: float) -> None:
    rows, generator = some(60)
    clean = np.sin(rows[:, 0]) + (rows[:, 1] == 1)
    _, found = fit(rows, clean + noise * generator.normal(size=60))
    assert noise / 2 < found < 2 * noise


def test_what_changes_nothing_gets_a_longer_length() -> None:
    rows, generator = some(60)
    idle = [parameter.name for parameter in SPACE.parameters].index("idle")
    size = [parameter.name for parameter in SPACE.parameters].index("size")
    values = np.cos(2.0 * rows[:, size]) + 0.02 * generator.normal(size=60)
    lengths, _ = fit(rows, values)
    assert lengths[size] < 0.5 < 1.5 < lengths[idle]


def test_values_known_to_be_rough_are_not_taken_for_noise_everywhere() -> None:
    rows, generator = some(60)
    scale = np.where(np.arange(60) % 2, 25.0, 1.0)
    clean = np.sin(rows[:, 0])
    values = clean + 0.05 * np.sqrt(scale) * generator.normal(size=60)
    assert fit(rows, values, scale)[1] < fit(rows, values)[1]


def test_the_fit_is_better_than_what_was_expected_beforehand() -> None:
    rows, generator = some(40)
    values = np.sin(rows[:, 0]) + 0.1 * generator.normal(size=40)
    values -= values.mean()
    found = fit_kernel(GEOMETRY, rows, values, np.ones(40), PRIOR)
    assert found.loss < evidence(rows, values, np.ones(40))(middle_and_spread()[0])[0] - 1


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        (SPACE.codes[:1], np.zeros(1)),
        (SPACE.codes[:2], np.array([-1.0, 1.0])),
        (SPACE.codes[:50], np.zeros(50)),
        (np.repeat(SPACE.codes[:1], 50, axis=0), np.zeros(50)),
        (np.repeat(SPACE.codes[:1], 50, axis=0), np.linspace(-3, 3, 50)),
        (np.repeat(SPACE.codes[:5], 12, axis=0), np.tile([-1e3, 1e3], 30)),
        (SPACE.codes[:60], 1e-12 * np.arange(60)),
        (SPACE.codes[:60], np.r_[np.zeros(59), 1e6]),
    ],
    ids=["one", "two", "constant", "same", "contradictory", "wild", "tiny", "outlier"],
)
def test_no_values_break_it(rows: Codes, values: Floats) -> None:
    found = fit_kernel(GEOMETRY, rows, values, np.ones(len(rows)), PRIOR)
    assert np.isfinite(found.kernel.lengths).all()
    assert (found.kernel.lengths > 0).all()
    assert 0 < found.noise < np.inf
    assert np.isfinite(found.loss)
