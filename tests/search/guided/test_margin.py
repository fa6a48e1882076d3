"""Values and sides together, against regression and against sampling the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.kernel import Amplitudes, Kernel
from autotune.search.guided.margin import Evidence, Margin
from autotune.search.guided.regression import Regression
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of({"size": ladder(6), "kind": kinds(3), "depth": ladder(4, when="size > 1")})
KERNEL = Kernel(
    Geometry.of(SPACE.parameters),
    np.array([0.6, 1.0, 0.8]),
    Amplitudes(constant=0.7, slope=0.5, main=0.6, pair=0.3, joint=0.3),
)
SIDE_NOISE = 0.2


def evidence(
    rows: Codes,
    sides: Floats,
    known: np.ndarray | None = None,
    values: Floats | None = None,
    noise: float = 0.05,
) -> Evidence:
    """Sides of rows, and the values of those that are known."""
    none = np.zeros(len(rows), dtype=bool)
    return Evidence(
        rows=rows,
        values=np.full(len(rows), np.nan) if values is None else values,
        known=none if known is None else known,
        sides=sides,
        noise=noise,
        side_noise=SIDE_NOISE,
    )


def some(count: int, seed: int = 0) -> Codes:
    return SPACE.codes[np.random.default_rng(seed).permutation(len(SPACE.codes))[:count]]


def sampled(
    told: Evidence, offset: Floats, at: Codes, offset_at: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and share above 0 at rows: the prior, weighed by the likelihood."""
    rows = np.vstack([told.rows, at])
    lower = np.linalg.cholesky(KERNEL.cross(rows, rows) + 1e-8 * np.eye(len(rows)))
    drawn = np.random.default_rng(5).normal(size=(400_000, len(rows))) @ lower.T
    drawn += np.concatenate([offset, offset_at])
    here, there = drawn[:, : len(told.rows)], drawn[:, len(told.rows) :]
    likely = np.ones(len(drawn))
    for number, is_known in enumerate(told.known):
        if is_known:
            away = (here[:, number] - told.values[number]) / told.noise
            likely *= np.exp(-0.5 * away**2)
        else:
            likely *= ndtr(told.sides[number] * here[:, number] / SIDE_NOISE)
    weight = likely / likely.sum()
    mean = weight @ there
    return mean, weight @ (there - mean) ** 2, weight @ ndtr(there / SIDE_NOISE)


def test_of_values_alone_it_is_regression() -> None:
    rows, offset_of = some(20), 0.1 * SPACE.codes[:, 0]
    offset = 0.1 * rows[:, 0]
    values = np.random.default_rng(1).normal(size=20)
    told = evidence(rows, np.ones(20), np.ones(20, dtype=bool), values)
    mean, variance = Margin.of(KERNEL, told, offset).predict(SPACE.codes, offset_of)
    regression = Regression.of(KERNEL, rows, values - offset, np.full(20, told.noise**2))
    expected, spread = regression.predict(SPACE.codes)
    assert mean == pytest.approx(expected + offset_of, abs=1e-5)
    assert variance == pytest.approx(spread, abs=1e-5)


@pytest.mark.parametrize(
    "sides", [(1.0,), (-1.0, -1.0), (1.0, -1.0), (1.0, 1.0, -1.0), (-1.0, 1.0, -1.0)], ids=str
)
@pytest.mark.parametrize("level", [0.0, 0.8])
def test_of_sides_alone_it_is_the_posterior(sides: tuple[float, ...], level: float) -> None:
    rows, at = some(len(sides), seed=2), SPACE.codes[::7]
    told = evidence(rows, np.array(sides))
    offset, offset_at = np.full(len(rows), level), np.full(len(at), level)
    margin = Margin.of(KERNEL, told, offset)
    mean, variance, share = sampled(told, offset, at, offset_at)
    assert margin.predict(at, offset_at)[0] == pytest.approx(mean, abs=0.03)
    assert margin.predict(at, offset_at)[1] == pytest.approx(variance, rel=0.05)
    assert margin.above(at, offset_at) == pytest.approx(share, abs=0.03)


def test_of_a_value_and_sides_it_is_the_posterior() -> None:
    rows, at = some(3, seed=3), SPACE.codes[::7]
    known, values = np.array([True, False, False]), np.array([0.6, np.nan, np.nan])
    told = evidence(rows, np.array([1.0, -1.0, 1.0]), known, values, noise=0.3)
    offset, offset_at = np.zeros(3), np.zeros(len(at))
    margin = Margin.of(KERNEL, told, offset)
    mean, variance, share = sampled(told, offset, at, offset_at)
    assert margin.predict(at, offset_at)[0] == pytest.approx(mean, abs=0.03)
    assert margin.predict(at, offset_at)[1] == pytest.approx(variance, rel=0.05)
    assert margin.above(at, offset_at) == pytest.approx(share, abs=0.03)


def test_a_point_that_does_not_fit_makes_its_like_less_likely() -> None:
    rows = some(6, seed=4)
    sides = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    zeros = np.zeros(len(SPACE.codes))
    before = Margin.of(KERNEL, evidence(rows[:5], sides[:5]), np.zeros(5))
    after = Margin.of(KERNEL, evidence(rows, sides), np.zeros(6))
    there = before.above(rows[5:], np.zeros(1)) - after.above(rows[5:], np.zeros(1))
    everywhere = before.above(SPACE.codes, zeros) - after.above(SPACE.codes, zeros)
    assert there[0] == pytest.approx(everywhere.max())
    assert there[0] > 0.1


def test_between_a_small_one_that_fits_and_a_large_one_that_does_not_it_falls() -> None:
    space = space_of({"size": ladder(9)})
    kernel = Kernel(
        Geometry.of(space.parameters),
        np.array([1.0]),
        Amplitudes(constant=0.7, slope=0.8, main=0.4, pair=0.0, joint=0.0),
    )
    told = evidence(space.codes[[0, 8]], np.array([1.0, -1.0]))
    fits = Margin.of(kernel, told, np.zeros(2)).above(space.codes, np.zeros(9))
    assert (np.diff(fits) < 0).all()
    assert fits[0] > 0.75
    assert fits[4] == pytest.approx(0.5, abs=0.01)
    assert fits[8] < 0.25


def test_where_nothing_is_near_the_offset_is_what_is_expected() -> None:
    told = evidence(some(4), np.array([1.0, -1.0, 1.0, 1.0]))
    narrow = Kernel(KERNEL.geometry, KERNEL.lengths, Amplitudes(1e-3, 0.0, 1e-3, 0.0, 0.0))
    offset_at = np.linspace(-2, 2, len(SPACE.codes))
    margin = Margin.of(narrow, told, np.zeros(4))
    assert margin.predict(SPACE.codes, offset_at)[0] == pytest.approx(offset_at, abs=1e-3)
    expected = ndtr(offset_at / SIDE_NOISE)
    assert margin.above(SPACE.codes, offset_at) == pytest.approx(expected, abs=1e-3)


def test_a_level_in_values_and_offset_is_the_same_level_in_the_answer() -> None:
    rows, values = some(8), np.linspace(-1, 1, 8)
    known, zeros = np.ones(8, dtype=bool), np.zeros(len(SPACE.codes))
    here = Margin.of(KERNEL, evidence(rows, np.ones(8), known, values), np.zeros(8))
    shifted = evidence(rows, np.ones(8), known, values + 3)
    there = Margin.of(KERNEL, shifted, np.full(8, 3.0))
    expected = here.predict(SPACE.codes, zeros)[0] + 3
    assert there.predict(SPACE.codes, zeros + 3)[0] == pytest.approx(expected)


@pytest.mark.parametrize("side_noise", [0.02, 0.35])
@pytest.mark.parametrize("share_known", [0.0, 0.5])
@pytest.mark.parametrize("level", [0.0, 4.0, -4.0])
def test_150_contradictory_points_break_nothing(
    side_noise: float, share_known: float, level: float
) -> None:
    """Sides and values by chance, and the same points again with other ones."""
    generator = np.random.default_rng(6)
    rows = SPACE.codes[generator.integers(len(SPACE.codes), size=150)]
    told = Evidence(
        rows=rows,
        values=generator.normal(size=150),
        known=generator.random(150) < share_known,
        sides=np.where(generator.random(150) < 0.5, 1.0, -1.0),
        noise=0.001,
        side_noise=side_noise,
    )
    margin = Margin.of(KERNEL, told, np.full(150, level))
    offset_at = np.full(len(SPACE.codes), level)
    mean, variance = margin.predict(SPACE.codes, offset_at)
    fits = margin.above(SPACE.codes, offset_at)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    assert ((fits >= 0) & (fits <= 1)).all()


def test_as_often_one_side_as_the_other_is_an_even_chance() -> None:
    rows = np.repeat(SPACE.codes[:1], 150, axis=0)
    told = evidence(rows, np.tile([1.0, -1.0], 75))
    fits = Margin.of(KERNEL, told, np.zeros(150)).above(SPACE.codes[:1], np.zeros(1))
    assert fits[0] == pytest.approx(0.5, abs=0.01)
