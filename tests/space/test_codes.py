"""Points as rows of integers, and spaces of recorded rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.space.codes import RowIndex, in_order
from autotune.space.definition import SpaceDefinition
from autotune.space.grouping import group_rows
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

PARAMETERS: dict[str, Any] = {
    "sp": {"choices": [1, 2, 4]},
    "kind": {"choices": ["ring", 1, True, "1", None, [1, 2], 1.5], "when": "sp > 1"},
    "batch": {"choices": [8, 16]},
}


def definition(parameters: dict[str, Any] = PARAMETERS, *rules: str) -> SpaceDefinition:
    content = {"parameters": parameters, "constraints": [{"rule": rule} for rule in rules]}
    return SpaceDefinition.parse(content, {"model": {}, "cluster": {}})


def test_codes_are_positions_of_choices() -> None:
    space = LegalSpace.build(definition())
    assert space.codes.dtype == np.int16
    assert space.codes.tolist() == [
        [0, -1, 0],
        [0, -1, 1],
        *([sp, kind, batch] for sp in (1, 2) for kind in range(7) for batch in (0, 1)),
    ]
    assert not space.codes.flags.writeable
    for row, codes in enumerate(space.codes):
        point = space.point(row)
        assert space.decode(codes) == point == space.points[row]
        assert space.encode(point).tolist() == codes.tolist()
        assert space.index_of(point) == row
        assert space.find(dict(reversed([*point.items()]))) == point
    assert space.rows_of(space.codes[[5, 3]]).tolist() == [5, 3]


@pytest.mark.parametrize(
    "values",
    [
        {"sp": True, "batch": 8},
        {"sp": 1.0, "batch": 8},
        {"sp": "1", "batch": 8},
        {"sp": 3, "batch": 8},
        {"sp": 1},
        {"sp": 1, "batch": 8, "more": 1},
        {"sp": 1, "kind": "ring", "batch": 8},
        {"sp": 1, "kind": None, "batch": 8},
        {"sp": 2, "batch": 8},
        {"sp": np.int64(1), "batch": 8},
        {"sp": {1}, "batch": 8},
    ],
)
def test_other_values_are_no_point(values: dict[str, Any]) -> None:
    space = LegalSpace.build(definition())
    assert space.encode(values) is None
    assert space.find(values) is None
    assert space.index_of(values) is None


def test_what_breaks_a_rule_has_codes_and_no_row() -> None:
    space = LegalSpace.build(definition(PARAMETERS, "batch > 8 or sp < 4"))
    values = {"sp": 4, "kind": True, "batch": 8}
    assert space.encode(values).tolist() == [2, 2, 0]
    assert space.find(values) is None
    assert space.index_of(values) is None


def test_points_are_a_sequence() -> None:
    space = LegalSpace.build(definition())
    points = space.points
    assert len(points) == 30
    assert points[-1] == Point({"sp": 4, "kind": 1.5, "batch": 16})
    assert points[1:3] == (points[1], points[2])
    assert isinstance(points[:2], tuple)
    assert list(points) == [points[n] for n in range(30)]
    assert points[4] in points
    assert Point({"sp": 1, "batch": 9}) not in points
    with pytest.raises(IndexError):
        points[30]


def rows_of_columns(columns: list[list[int]]) -> list[tuple[int, ...]]:
    return list(zip(*columns, strict=True))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_equal_rows_are_one_group_in_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    value = st.one_of(st.integers(0, 3), st.sampled_from([-(2**62), 2**62, 2**40, -5]))
    column = st.lists(value, min_size=count, max_size=count)
    columns = data.draw(st.lists(column, min_size=1, max_size=5))
    groups, first = group_rows([np.array(c) for c in columns], count)
    rows = rows_of_columns(columns)
    ordered = sorted(set(rows))
    assert [ordered[group] for group in groups] == rows
    assert [rows[row] for row in first] == ordered


def test_rows_of_many_columns_are_found() -> None:
    """40 columns of 30 choices take four keys of 62 bits."""
    random = np.random.default_rng(0)
    rows = random.integers(-1, 30, (2000, 40)).astype(np.int16)
    rows[1::2] = rows[::2]
    rows[1::2, 39] = (rows[1::2, 39] + 2) % 31 - 1
    index = RowIndex(rows, [30] * 40)
    assert index.rows_of(rows).tolist() == list(range(2000))
    changed = rows.copy()
    changed[:, 20] = (changed[:, 20] + 2) % 31 - 1
    assert set(index.rows_of(changed).tolist()) == {-1}
    beyond = rows.copy()
    beyond[:, 39] += 31
    assert set(index.rows_of(beyond).tolist()) == {-1}
    # Of 3 choices each: as digits to base 4 these two rows are the same number.
    assert RowIndex(np.array([[0, -1]], np.int16), [3, 3]).rows_of(np.array([[-1, 3]])) == [-1]
    assert RowIndex(rows[:0], [30] * 40).rows_of(rows[:2]).tolist() == [-1, -1]
    shuffled = in_order(random.permutation(rows))
    assert shuffled.tolist() == sorted(rows.tolist())


def test_more_choices_than_a_code_holds_are_refused() -> None:
    parameters = {"a": {"choices": list(range(40_000))}}
    with pytest.raises(UserError, match=r"a has 40000 choices; allowed are at most 32000"):
        LegalSpace.build(definition(parameters))


RECORDED = [[2, 0, 1], [0, -1, 0], [0, -1, 1], [1, 3, 0], [1, -1, 0]]


def test_a_recorded_space_has_exactly_its_rows_in_their_order() -> None:
    baseline = Point({"sp": 1, "batch": 8})
    space = LegalSpace.of_codes(definition(PARAMETERS, "sp < 0"), RECORDED, baseline)
    assert space.codes.tolist() == RECORDED
    assert (space.size, space.size_text, space.is_listed) == (5, "5", True)
    assert space.combinations == 2 + 2 * 7 * 2
    assert space.exclusions == ()
    assert space.index_of({"sp": 1, "batch": 8}) == 1
    assert space.find({"batch": 8, "sp": 2, "kind": "1"}) == Point(
        {"sp": 2, "kind": "1", "batch": 8}
    )
    # A row whose parameter has no value is found, whatever the condition says.
    assert space.index_of({"sp": 2, "batch": 8}) == 4
    assert space.find({"sp": 2, "kind": "ring", "batch": 16}) is None


def test_full_rows_of_a_recorded_space() -> None:
    space = LegalSpace.of_codes(definition(), RECORDED, Point({"sp": 1, "batch": 8}))
    full = np.array(list(itertools.product(range(3), range(7), range(2))))
    rows, legal = space.legalize(full)
    expected = {(0, kind, batch): [0, -1, batch] for kind in range(7) for batch in range(2)} | {
        (1, kind, 0): [1, -1, 0] for kind in range(7)
    }
    expected |= {(1, 3, 0): [1, 3, 0], (2, 0, 1): [2, 0, 1]}
    for given_row, row, is_legal in zip(full.tolist(), rows.tolist(), legal.tolist(), strict=True):
        assert is_legal == (tuple(given_row) in expected)
        assert not is_legal or row == expected[tuple(given_row)]


def test_wrong_recorded_rows_are_named() -> None:
    baseline = Point({"sp": 1, "batch": 8})
    with pytest.raises(UserError, match="sp=1 batch=8 twice"):
        LegalSpace.of_codes(definition(), [[0, -1, 0], [1, 2, 0], [0, -1, 0]], baseline)
    with pytest.raises(UserError, match=r"baseline \(sp=1 batch=8\) is not among the 1 recorded"):
        LegalSpace.of_codes(definition(), [[1, 2, 0]], baseline)
    with pytest.raises(UserError, match="is not among the 0 recorded"):
        LegalSpace.of_codes(definition(), np.zeros((0, 3)), baseline)
