"""The candidates of a large space are legal, each once, and hold what is near the best."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.guided.pool import SMALL, broad_pool
from autotune.space.legal import LegalSpace
from tests.search.guided.planted import kinds, ladder, space_of

LARGE = space_of(
    {
        "a": ladder(8),
        "b": ladder(8),
        "c": ladder(8),
        "kind": kinds(6),
        "depth": ladder(5, when="kind == 'kind1'"),
        "width": ladder(4, when="kind == 'kind2'"),
    },
    "a * b <= 2048",
    "depth <= c",
)


def pool(space: LegalSpace, best: np.ndarray, seed: int = 0) -> np.ndarray:
    return broad_pool(space, best, np.random.default_rng(seed))


def test_a_small_space_is_looked_at_whole() -> None:
    space = space_of({"a": ladder(8), "b": ladder(8)})
    assert np.array_equal(pool(space, space.codes[:3]), space.codes)


@pytest.mark.parametrize("seed", range(3))
def test_candidates_are_legal_and_each_once(seed: int) -> None:
    assert len(LARGE.codes) > SMALL
    best = LARGE.codes[np.random.default_rng(seed).integers(len(LARGE.codes), size=20)]
    found = pool(LARGE, best, seed)
    assert len(np.unique(found, axis=0)) == len(found)
    assert (LARGE.rows_of(found) >= 0).all()
    assert found.dtype == np.int16


def test_all_that_differs_from_the_best_in_one_active_parameter_is_there() -> None:
    best = LARGE.codes[[1234]]
    found = {row.tobytes() for row in pool(LARGE, best)}
    one_apart = (best != LARGE.codes).sum(axis=1) == 1
    assert one_apart.sum() > 10
    assert all(row.tobytes() in found for row in LARGE.codes[one_apart])


def test_a_choice_that_switches_a_parameter_on_is_near_too() -> None:
    off = LARGE.codes[(LARGE.codes[:, 3] == 0) & (LARGE.codes[:, 2] == 7)][:1]
    found = pool(LARGE, off)
    alike = (found[:, :3] == off[:, :3]).all(axis=1)
    assert set(found[alike, 3]) == set(range(6))


def test_without_a_best_point_there_are_candidates() -> None:
    assert len(pool(LARGE, LARGE.codes[:0])) > SMALL // 2


def test_the_same_generator_gives_the_same_candidates() -> None:
    best = LARGE.codes[:5]
    assert np.array_equal(pool(LARGE, best), pool(LARGE, best))
    assert not np.array_equal(pool(LARGE, best), pool(LARGE, best, seed=1))
