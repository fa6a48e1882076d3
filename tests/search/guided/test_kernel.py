"""The covariance of points, against its definition pair by pair."""

from __future__ import annotations

from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest
from scipy.special import gamma, kv

from autotune.search.guided.geometry import Geometry
from autotune.search.guided.kernel import Amplitudes, Kernel
from autotune.space.definition import Parameter
from autotune.space.point import Point
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of(
    {
        "degree": ladder(4),
        "kind": kinds(3),
        "depth": {"choices": [1, 2, 3], "ordered": True, "when": "degree > 1"},
        "way": kinds(2, when="kind == 'kind2'"),
    }
)
GEOMETRY = Geometry.of(SPACE.parameters)
LENGTHS = np.array([0.4, 1.3, 2.5, 0.7])
AMPLITUDES = Amplitudes(constant=1.1, slope=0.6, main=0.9, pair=0.5, joint=0.3)


def matern(distance: float) -> float:
    """By its definition with a Bessel function (Rasmussen and Williams, equation 4.14)."""
    if distance == 0:
        return 1.0
    smoothness = 5 / 2
    scaled = sqrt(2 * smoothness) * distance
    return float(
        2 ** (1 - smoothness) / gamma(smoothness) * scaled**smoothness * kv(smoothness, scaled)
    )


def distance(parameter: Parameter, one: Point, other: Point) -> float:
    active = (parameter.name in one) + (parameter.name in other)
    if active == 0:
        return 0.0
    last = len(parameter.choices) - 1
    places = [parameter.index_of(p[parameter.name]) for p in (one, other) if parameter.name in p]
    if active == 1:  # beside the line from 0 to 1, at a distance of 1 from both ends
        return sqrt((places[0] / last - 0.5) ** 2 + 0.75) if parameter.ordered else 1.0
    if parameter.ordered:
        return abs(places[0] - places[1]) / last
    return float(places[0] != places[1])


def line(parameter: Parameter, one: Point, other: Point) -> float:
    if parameter.name not in one or parameter.name not in other:
        return 0.0
    count = len(parameter.choices)
    first, second = (parameter.index_of(p[parameter.name]) for p in (one, other))
    if parameter.ordered:
        return (2 * first / (count - 1) - 1) * (2 * second / (count - 1) - 1)
    return 1.0 if first == second else -1 / (count - 1)


def covariance(one: Point, other: Point) -> float:
    alike = [
        matern(distance(parameter, one, other) / length)
        for parameter, length in zip(SPACE.parameters, LENGTHS, strict=True)
    ]
    pairs = [first * second for first, second in combinations(alike, 2)]
    size = AMPLITUDES
    return (
        size.constant**2
        + size.slope**2 * sum(line(parameter, one, other) for parameter in SPACE.parameters)
        + size.main**2 * sum(alike) / len(alike)
        + size.pair**2 * sum(pairs) / len(pairs)
        + size.joint**2 * prod(alike)
    )


def test_covariance_is_that_of_a_double_loop() -> None:
    points = list(SPACE.points)
    expected = [[covariance(one, other) for other in points[:15]] for one in points]
    found = Kernel(GEOMETRY, LENGTHS, AMPLITUDES).cross(SPACE.codes, SPACE.codes[:15])
    assert found == pytest.approx(np.array(expected), abs=1e-12)


def test_variance_is_the_covariance_with_itself() -> None:
    kernel = Kernel(GEOMETRY, LENGTHS, AMPLITUDES)
    itself = np.diag(kernel.cross(SPACE.codes, SPACE.codes))
    assert kernel.variance(SPACE.codes) == pytest.approx(itself)


@pytest.mark.parametrize("seed", range(12))
def test_covariances_are_positive_whatever_the_lengths(seed: int) -> None:
    """Also of ordered parameters that are inactive at times, with lengths far beyond 1."""
    space = space_of(
        {
            "kind": kinds(2),
            "depth": {"choices": list(range(12)), "ordered": True, "when": "kind == 'kind1'"},
            "width": {"choices": list(range(12)), "ordered": True, "when": "kind == 'kind0'"},
            "size": ladder(6),
        }
    )
    generator = np.random.default_rng(seed)
    lengths = np.exp(generator.uniform(-3, 4, size=4))
    size = np.exp(generator.uniform(-2, 1, size=5))
    kernel = Kernel(Geometry.of(space.parameters), lengths, Amplitudes(*size))
    least = np.linalg.eigvalsh(kernel.cross(space.codes, space.codes)).min()
    assert least > -1e-11 * kernel.variance(space.codes).max() * len(space.codes)
