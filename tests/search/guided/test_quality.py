"""A guard of what the models are for: far fewer runs than random search needs.

Three functions over some 500 points. Random search is its exact median, without a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import comb
from statistics import median
from typing import Any

import numpy as np
import pytest

from autotune.measure.outcome import Outcome
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from tests.search.guided.planted import Sweep, guided, kinds, ladder, ok, oom, space_of

SEEDS = 10
# As fast as this share of the fastest is found.
CLOSE = 1.05
SPACE = space_of(
    {
        "micro_batch_size": ladder(5),
        "tp": ladder(4),
        "chunk": ladder(5),
        "kind": kinds(3),
        "overlap": {"choices": [False, True]},
    }
)
LIMIT = 100


def effects(seed: int) -> list[np.ndarray]:
    """What each choice of each parameter costs, in e-folds."""
    generator = np.random.default_rng(seed)
    return [0.35 * generator.normal(size=len(p.choices)) for p in SPACE.parameters]


def additive(row: np.ndarray) -> float:
    return float(sum(effect[place] for effect, place in zip(effects(1), row, strict=True)))


def with_interactions(row: np.ndarray) -> float:
    """The best choice of one parameter depends on that of another."""
    micro_batch, tp, chunk, kind, overlap = (int(place) for place in row)
    together = 0.06 * (micro_batch - tp - 1) ** 2 + 0.05 * (chunk - 2 * kind) ** 2
    return together + 0.3 * (overlap == kind % 2) + 0.08 * abs(tp - 2)


def faster_with_memory(row: np.ndarray) -> float:
    micro_batch, tp, chunk, kind, overlap = (int(place) for place in row)
    return -0.25 * micro_batch + 0.15 * tp + 0.1 * abs(chunk - 1) + 0.1 * kind - 0.1 * overlap


def peak(row: np.ndarray) -> float:
    micro_batch, tp, chunk, kind, _ = (int(place) for place in row)
    return 12 + 16 * 2.0**micro_batch / 2.0 ** (0.9 * tp) * (1 + 0.1 * chunk) * (1 + 0.2 * kind)


def measure(logarithm: Callable[[np.ndarray], float], limit: int | None, point: Point) -> Outcome:
    row = SPACE.encode(point)
    assert row is not None
    if limit is not None and peak(row) > limit:
        return oom()
    return ok(float(np.exp(logarithm(row))), None if limit is None else int(peak(row)))


def random_median(total: int, good: int) -> int:
    """So many draws without replacement hold one of the good ones with probability 1/2."""
    return next(
        draws
        for draws in range(1, total + 1)
        if 2 * comb(total - good, draws) <= comb(total, draws)
    )


def runs_needed(space: LegalSpace, planted: Any, limit: int | None, goal: float, seed: int) -> int:
    sweep, sampler = Sweep(space, planted, limit), guided(space, seed, limit)
    for number in range(1, len(space.codes) + 1):
        sweep.step(sampler)
        if (sweep.records[-1].outcome.batch_time_s or np.inf) <= goal:
            return number
    raise AssertionError("the whole space was tried")


@pytest.mark.parametrize(
    ("logarithm", "limit"),
    [(additive, None), (with_interactions, None), (faster_with_memory, LIMIT)],
    ids=["additive", "interactions", "memory limit"],
)
def test_far_fewer_runs_than_random_search(
    logarithm: Callable[[np.ndarray], float], limit: int | None
) -> None:
    planted = partial(measure, logarithm, limit)
    times = np.array([planted(point).batch_time_s or np.inf for point in SPACE.points])
    goal = CLOSE * times.min()
    expected = random_median(len(times), int((times <= goal).sum()))
    needed = [runs_needed(SPACE, planted, limit, goal, seed) for seed in range(SEEDS)]
    assert median(needed) < expected / 3
