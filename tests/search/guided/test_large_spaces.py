"""Spaces of which not all points are looked at, or even listed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from autotune.measure.outcome import Outcome
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.space.scope import is_legal
from tests.search.guided.planted import Sweep, guided, kinds, ladder, ok, oom, space_of


@pytest.fixture(scope="module")
def unlisted() -> LegalSpace:
    """About 10^9 legal points, with a rule and a condition."""
    parameters = {f"p{n}": ladder(10) for n in range(7)}
    extra = {"kind": kinds(10), "depth": ladder(10, when="kind == 'kind1'")}
    return space_of({**parameters, **extra, "way": kinds(8)}, "p0 * p1 <= 16384")


@pytest.fixture(scope="module")
def listed() -> LegalSpace:
    """About 10^5 legal points."""
    return space_of({f"p{n}": ladder(6) for n in range(6)} | {"kind": kinds(3)}, "p0 <= p1")


def measure(point: Point) -> Outcome:
    """The fastest points are where all powers are 3; large products do not fit."""
    powers = [np.log2(value) for name, value in point.items() if name.startswith("p")]
    if sum(powers) > 30:
        return oom()
    away = sum((power - 3) ** 2 for power in powers)
    return ok(float(np.exp(0.02 * away)) * (1.0 if point["kind"] == "kind1" else 1.1))


def run(space: LegalSpace, trials: int) -> list[Point]:
    return Sweep(space, measure).run(guided(space), trials)


@pytest.fixture(scope="module")
def proposed(unlisted: LegalSpace) -> list[Point]:
    """The first 40 points of 10^9."""
    return run(unlisted, 40)


def test_of_a_billion_points_legal_ones_are_proposed(
    unlisted: LegalSpace, proposed: list[Point]
) -> None:
    assert not unlisted.is_listed
    assert unlisted.size_estimate > 1e9
    assert len(set(proposed)) == 40
    assert all(is_legal(unlisted.definition, point) for point in proposed)


def seconds(points: Iterable[Point]) -> list[float]:
    return [measure(point).batch_time_s or np.inf for point in points]


def random_points(space: LegalSpace) -> list[Point]:
    rows = np.random.default_rng(0).integers(len(space.codes), size=2000)
    return [space.point(int(row)) for row in rows]


def test_forty_of_a_billion_are_better_than_2000_random_ones(
    unlisted: LegalSpace, proposed: list[Point]
) -> None:
    assert min(seconds(proposed)) <= min(seconds(random_points(unlisted)))


def test_forty_of_a_listed_space_are_better_than_2000_random_ones(listed: LegalSpace) -> None:
    assert listed.is_listed
    assert len(listed.codes) > 50_000
    assert min(seconds(run(listed, 40))) <= min(seconds(random_points(listed)))


def test_points_outside_the_sample_are_found(unlisted: LegalSpace, proposed: list[Point]) -> None:
    """What is near the best ones need not be among the rows that are kept."""
    assert any(unlisted.index_of(point) is None for point in proposed)


def test_a_resumed_sweep_of_a_billion_points_goes_on_alike(
    unlisted: LegalSpace, proposed: list[Point]
) -> None:
    resumed = Sweep(unlisted, measure)
    for point in proposed[:25]:
        assert resumed.step(guided(unlisted)) == point
