"""Distances between choices, and the lines over ordered ones."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.guided.geometry import Geometry
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of(
    {
        "switch": {"choices": [False, True]},
        "kind": kinds(4),
        "degree": ladder(6),
        "depth": {"choices": list(range(12)), "ordered": True, "when": "switch"},
        "way": kinds(3, when="switch"),
        "only": {"choices": [2], "ordered": True, "when": "switch"},
        "fixed": {"choices": ["x"]},
    }
)
GEOMETRY = Geometry.of(SPACE.parameters)
TABLES = dict(
    zip(
        [SPACE.parameters[column].name for column in GEOMETRY.columns],
        zip(GEOMETRY.distances, GEOMETRY.slopes, strict=True),
        strict=True,
    )
)


def test_a_parameter_that_never_varies_is_left_out() -> None:
    assert set(TABLES) == {"switch", "kind", "degree", "depth", "way", "only"}


def test_a_space_without_anything_to_vary_has_a_geometry() -> None:
    assert Geometry.of(space_of({"fixed": {"choices": [1]}}).parameters).parameters == 1


def test_ordered_choices_are_apart_as_their_ranks() -> None:
    distances, _ = TABLES["degree"]
    assert distances[1:, 1:] == pytest.approx(np.abs(np.subtract.outer(range(6), range(6))) / 5)


@pytest.mark.parametrize("name", ["switch", "kind", "way"])
def test_unordered_choices_are_equally_far_apart(name: str) -> None:
    distances, _ = TABLES[name]
    assert distances == pytest.approx(1 - np.eye(len(distances)))


@pytest.mark.parametrize("name", TABLES)
def test_inactive_is_like_itself_and_unlike_every_choice(name: str) -> None:
    distances, _ = TABLES[name]
    assert distances[0, 0] == 0
    assert (distances[0, 1:] > 0.8).all()
    assert distances.max() <= 1


@pytest.mark.parametrize("name", TABLES)
def test_some_room_holds_the_distances(name: str) -> None:
    """Points with these distances exist (classical scaling, Torgerson 1952).

    Only then are covariances of them positive, whatever the length.
    """
    distances, _ = TABLES[name]
    assert distances == pytest.approx(distances.T)
    centre = np.eye(len(distances)) - 1 / len(distances)
    assert np.linalg.eigvalsh(-centre @ distances**2 @ centre / 2).min() > -1e-12


@pytest.mark.parametrize("name", TABLES)
def test_a_line_has_a_positive_covariance_and_nothing_where_inactive(name: str) -> None:
    _, slopes = TABLES[name]
    assert np.linalg.eigvalsh(slopes).min() > -1e-12
    assert not slopes[0].any()


def test_a_line_goes_from_minus_one_to_one() -> None:
    _, slopes = TABLES["degree"]
    line = 2 * np.arange(6) / 5 - 1
    assert slopes[1:, 1:] == pytest.approx(np.outer(line, line))


def test_levels_of_an_unordered_parameter_sum_to_nothing() -> None:
    _, slopes = TABLES["kind"]
    assert slopes.sum(axis=0) == pytest.approx(np.zeros(5))
    assert np.diag(slopes)[1:] == pytest.approx(np.ones(4))
