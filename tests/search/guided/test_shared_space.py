"""Points of an older study and rows of a new one as rows of one space."""

from __future__ import annotations

from typing import Any

import numpy as np

from autotune.search.guided.shared_space import SharedSpace
from autotune.space.definition import Parameter


def shared(older: list[dict[str, Any]], *newer: Parameter) -> SharedSpace:
    space = SharedSpace.of(older, newer)
    assert space is not None
    return space


def test_a_new_choice_of_numbers_lies_between_its_neighbours() -> None:
    degree = Parameter("degree", (1, 2, 4), ordered=True)
    space = shared([{"degree": 1}, {"degree": 8}, {"degree": 2}], degree)
    assert [p.choices for p in space.parameters] == [(1, 2, 4, 8)]
    assert space.parameters[0].ordered
    assert space.older_rows([{"degree": 8}, {"degree": 1}]).tolist() == [[3], [0]]
    assert space.newer_rows(np.array([[0], [1], [2]], dtype=np.int16)).tolist() == [[0], [1], [2]]


def test_falling_numbers_stay_falling() -> None:
    chunk = Parameter("chunk", (256, 64), ordered=True)
    merged = shared([{"chunk": 256}, {"chunk": 128}], chunk).parameters[0]
    assert merged.choices == (256, 128, 64)


def test_an_older_value_without_a_place_takes_the_order_away() -> None:
    level = Parameter("level", ("none", "some"), ordered=True)
    merged = shared([{"level": "none"}, {"level": "full"}], level).parameters[0]
    assert (merged.choices, merged.ordered) == (("none", "full", "some"), False)
    # 0 stands for "all" here, so the order is not that of the numbers.
    chunk = Parameter("chunk", (0, 256, 64), ordered=True)
    assert not shared([{"chunk": 0}, {"chunk": 128}], chunk).parameters[0].ordered
    assert shared([{"chunk": 0}, {"chunk": 64}], chunk).parameters[0].ordered


def test_types_are_told_apart() -> None:
    mixed = Parameter("mixed", (1, True, "1"))
    space = shared([{"mixed": True}, {"mixed": "1"}, {"mixed": 1}], mixed)
    assert space.parameters[0].choices == (True, "1", 1)
    assert space.older_rows([{"mixed": v} for v in ("1", True, 1)]).tolist() == [[1], [0], [2]]
    assert space.newer_rows(np.array([[0], [1], [2]], dtype=np.int16)).tolist() == [[2], [0], [1]]


def test_columns_are_found_by_name_and_inactive_stays_inactive() -> None:
    newer = [Parameter("extra", (7, 8)), Parameter("alg", ("a", "b")), Parameter("tp", (1, 2))]
    space = shared([{"tp": 1, "alg": "a"}, {"tp": 2}, {"tp": 2, "alg": "b"}], *newer)
    assert [p.name for p in space.parameters] == ["tp", "alg"]
    assert space.older_rows([{"tp": 2}]).tolist() == [[1, -1]]
    rows = np.array([[0, -1, 1], [1, 1, 0]], dtype=np.int16)
    assert space.newer_rows(rows).tolist() == [[1, -1], [0, 1]]


def test_what_the_new_study_lacks_is_unknown_there() -> None:
    space = shared([{"tp": 1, "gone": "x"}, {"tp": 2, "gone": "y"}], Parameter("tp", (1, 2)))
    gone = space.parameters[1]
    assert gone.choices[:2] == ("x", "y")
    assert len(gone.choices) == 3
    assert space.older_rows([{"tp": 1, "gone": "y"}]).tolist() == [[0, 1]]
    # Neither one of the values it had, nor inactive.
    assert space.newer_rows(np.array([[1]], dtype=np.int16)).tolist() == [[1, 2]]


def test_straight_lines_say_nothing_of_choices_that_were_not_seen() -> None:
    """The others' levels sum to zero, as among two of them."""
    older = [{"kind": "b", "gone": 1}, {"kind": "c", "gone": 2}]
    space = shared(older, Parameter("kind", ("a", "b", "c")))
    assert space.parameters[0].choices == ("b", "c", "a")
    expected = [[0, 0, 0, 0], [0, 1, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]]
    for slopes in space.geometry.slopes:
        np.testing.assert_allclose(slopes, expected)
    # As far from the others as they are from each other.
    assert space.geometry.distances[0][3].tolist() == [1, 1, 1, 0]


def test_what_did_not_vary_is_left_out() -> None:
    newer = [Parameter("tp", (1, 2)), Parameter("fixed", (5, 6))]
    older = [{"tp": 1, "fixed": 5, "other": 0}, {"tp": 2, "fixed": 5, "other": 0}]
    assert [p.name for p in shared(older, *newer).parameters] == ["tp"]


def test_nothing_shared_that_varied() -> None:
    assert SharedSpace.of([], [Parameter("tp", (1, 2))]) is None
    assert SharedSpace.of([{"tp": 1}, {"tp": 1}], [Parameter("tp", (1, 2))]) is None
    assert SharedSpace.of([{"gone": 1}, {"gone": 2}], [Parameter("tp", (1, 2))]) is None
