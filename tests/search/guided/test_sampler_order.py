"""A proposal follows from the seed and the trials, not from how they came about."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.measure.outcome import Outcome
from autotune.search.point_sampler import PointSampler
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from tests.search.guided.planted import (
    LAYOUTS,
    LAYOUTS_LIMIT,
    Measure,
    Sweep,
    failed,
    guided,
    kinds,
    ladder,
    layout,
    ok,
    oom,
    space_of,
)

LARGE = space_of({**{name: ladder(6) for name in "abcd"}, "kind": kinds(4)})


def large(point: Point) -> Outcome:
    """Some points fail and some run out of memory."""
    if point["kind"] == "kind3" and point["a"] > 4:
        return failed()
    if point["a"] * point["b"] > 64:
        return oom()
    powers = [np.log2(point[name]) for name in "abcd"]
    bends = sum((n + 1) * (power - n) ** 2 for n, power in enumerate(powers))
    return ok(float(np.exp(0.05 * bends)) * (1.2 if point["kind"] == "kind0" else 1.0))


CASES = pytest.mark.parametrize(
    ("space", "measure", "limit"),
    [(LAYOUTS, layout, LAYOUTS_LIMIT), (LARGE, large, None)],
    ids=["small", "large"],
)


@CASES
def test_a_resumed_sweep_goes_on_as_an_unbroken_one(
    space: LegalSpace, measure: Measure, limit: int | None
) -> None:
    """A sampler that was never asked before proposes at every step what the first one does."""
    unbroken, sampler = Sweep(space, measure, limit), guided(space, 3, limit)
    resumed = Sweep(space, measure, limit)
    for number in range(40):
        point = unbroken.step(sampler)
        assert resumed.step(guided(space, 3, limit)) == point, f"trial {number}"


def in_flight(space: LegalSpace, measure: Measure, limit: int | None, order: list[int]) -> Point:
    """The next proposal after 12 trials and five more that ended in this order."""
    sweep, sampler = Sweep(space, measure, limit), guided(space, 1, limit)
    sweep.run(sampler, 12)
    started = [sweep.ask(sampler) for _ in range(5)]
    for number in order:
        sweep.tell(*started[number])
    return sweep.ask(sampler)[1]


@CASES
def test_the_order_in_which_results_arrive_makes_no_difference(
    space: LegalSpace, measure: Measure, limit: int | None
) -> None:
    orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]]
    points = {in_flight(space, measure, limit, order) for order in orders}
    assert len(points) == 1


def overlapping(order_seed: int, sampler: PointSampler | None) -> list[Point]:
    """Trials two at a time; who ends first is up to chance, who starts next is not."""
    sweep = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT)
    generator = np.random.default_rng(order_seed)
    points = []
    for _ in range(12):
        asking = sampler or guided(LAYOUTS, 0, LAYOUTS_LIMIT)
        started = [sweep.ask(asking) for _ in range(2)]
        points += [point for _, point in started]
        for number in generator.permutation(2):
            sweep.tell(*started[number])
    return points


def test_a_sweep_of_overlapping_trials_is_reproducible() -> None:
    runs = [overlapping(seed, guided(LAYOUTS, 0, LAYOUTS_LIMIT)) for seed in range(2)]
    assert runs[0] == runs[1]
    assert overlapping(5, None) == runs[0]


def test_what_a_sampler_was_asked_elsewhere_makes_no_difference() -> None:
    expected = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT).run(guided(LAYOUTS), 20)
    sampler = guided(LAYOUTS)
    ahead, behind = (Sweep(LAYOUTS, layout, LAYOUTS_LIMIT) for _ in range(2))
    assert ahead.run(sampler, 20) == expected
    assert behind.run(sampler, 20) == expected


@pytest.mark.parametrize(("space", "measure"), [(LAYOUTS, layout), (LARGE, large)])
def test_another_seed_proposes_other_points(space: LegalSpace, measure: Measure) -> None:
    one, same, other = (Sweep(space, measure).run(guided(space, seed), 8) for seed in (0, 0, 1))
    assert one == same
    assert one != other
