"""Spaces with conditions and rules, against plain recursion over all combinations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.space import diagram, enumeration, grouping
from autotune.space.definition import Rule, SpaceDefinition
from autotune.space.legal import LegalSpace
from tests.space import reference

FACTS = {"model": {"heads": 6}, "cluster": {"ranks": 8}}
NAMES = ["a", "b", "c", "d", "e"]
VALUES: list[Any] = [0, 1, 2, 3, 4, 8, 0.5, True, False, "x", "2", None, [1, 2]]

# Bounds so small that every way of enumerating is taken, by the part of the code that has them.
BOUNDS: dict[str, list[tuple[Any, str, int]]] = {
    "as they are": [],
    "nothing merged": [(enumeration, "_MERGED", 0), (enumeration, "_BLOCK_CELLS", 1)],
    "some merged": [(enumeration, "_MERGED", 60), (enumeration, "_BLOCK_CELLS", 16)],
    "no diagrams": [(diagram, "_LARGEST_LAST_LAYER", 25), (diagram, "_LARGEST_LAYER", 25)],
    "merged where worthwhile": [
        (grouping, "_MANY", 4),
        (grouping, "_LOOKED_AT", 8),
        (diagram, "_TELLING_LAYER", 4),
    ],
}


@contextmanager
def bounds(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, attribute, value in BOUNDS[name]:
            patch.setattr(module, attribute, value)
        yield


def _conditions(names: list[str]) -> st.SearchStrategy[str | None]:
    name = st.sampled_from(names)
    value = st.sampled_from(["0", "1", "2", "'x'", "null", "true"])
    return st.one_of(
        st.none(),
        st.none(),
        st.tuples(name, value).map(lambda t: f"{t[0]} != {t[1]}"),
        st.tuples(name, value).map(lambda t: f"{t[0]} == {t[1]}"),
        name.map(lambda n: f"{n} in [0, 1, 2] and {n} < 2 or {n} * 2 == 8"),
        st.tuples(name, name).map(lambda t: f"{t[0]} != 'x' and {t[1]} in [1, 2, 0.5]"),
    )


def _rules() -> st.SearchStrategy[str]:
    name = st.sampled_from(NAMES)
    return st.one_of(
        st.tuples(name, name).map(lambda t: f"{t[0]} != {t[1]}"),
        st.tuples(name, name, name).map(lambda t: f"{t[0]} + {t[1]} * {t[2]} <= 9"),
        st.tuples(name, name).map(lambda t: f"cluster.ranks % ({t[0]} * {t[1]}) == 0"),
        st.tuples(name, name).map(lambda t: f"{t[0]} == 'x' or {t[1]} in ['x', 1, 2, null]"),
        st.tuples(name, name, name).map(lambda t: f"{t[0]} > 0 and {t[1]} > 0 or {t[2]} == 0"),
        st.tuples(name, name, name).map(lambda t: f"({t[0]} if {t[1]} == 1 else {t[2]}) != 2"),
        st.just("(a + 2 * b + 3 * c + 5 * d + 7 * e) % 3 != 1"),
        st.just("model.heads % 2 == 0"),
        st.just("max(a, b, c) >= min(d, e)"),
    )


@st.composite
def spaces(draw: st.DrawFn) -> SpaceDefinition:
    """Spaces of five parameters, most of whose values are numbers."""
    numbers = st.lists(st.sampled_from(VALUES[:7]), min_size=1, max_size=4, unique_by=repr)
    anything = st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique_by=repr)
    entries: dict[str, dict[str, Any]] = {}
    for name in draw(st.permutations(NAMES)):
        entry: dict[str, Any] = {"choices": draw(st.one_of(numbers, numbers, anything))}
        # Of those before it only, so that there is no circle; the file has another order.
        when = draw(_conditions(list(entries))) if entries else None
        entries[name] = entry | ({"when": when} if when else {})
    parameters = {name: entries[name] for name in draw(st.permutations(NAMES))}
    rules = [{"rule": rule} for rule in draw(st.lists(_rules(), min_size=1, max_size=5))]
    return SpaceDefinition.parse({"parameters": parameters, "constraints": rules}, FACTS)


def with_baseline(definition: SpaceDefinition, values: dict[str, Any]) -> SpaceDefinition:
    return SpaceDefinition(definition.parameters, definition.rules, definition.facts, values)


@pytest.mark.parametrize("limits", BOUNDS)
@settings(max_examples=120, deadline=None)
@given(definition=spaces())
def test_points_and_exclusions_are_those_of_plain_recursion(
    limits: str, definition: SpaceDefinition
) -> None:
    with bounds(limits):
        try:
            expected = reference.count(definition)
        except UserError:
            with pytest.raises(UserError, match="cannot evaluate"):
                LegalSpace.build(definition)
            return
        if not expected.points:
            with pytest.raises(UserError, match=f"exclude all {expected.combinations} comb"):
                LegalSpace.build(definition)
            return
        space = LegalSpace.build(with_baseline(definition, expected.points[0]))
    assert [dict(point) for point in space.points] == expected.points
    assert [list(point) for point in space.points] == [list(point) for point in expected.points]
    assert space.combinations == expected.combinations
    assert space.size == len(expected.points)
    assert [e.excluded for e in space.exclusions] == expected.excluded
    assert [e.alone for e in space.exclusions] == expected.alone


@settings(max_examples=120, deadline=None)
@given(definition=spaces(), limits=st.sampled_from(["as they are", "no diagrams"]))
def test_rows_are_made_legal_as_evaluation_says(definition: SpaceDefinition, limits: str) -> None:
    """Every full row, against what the reference says of its active part."""
    try:
        expected = reference.count(definition)
    except UserError:
        return
    if not expected.points:
        return
    with bounds(limits):
        space = LegalSpace.build(with_baseline(definition, expected.points[0]))
    sizes = [len(parameter.choices) for parameter in space.parameters]
    rows = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
    legalized, legal = space.legalize(rows)
    found = {tuple(row) for row in legalized.tolist()}
    assert len(found) == expected.combinations
    assert {tuple(row) for row in legalized[legal].tolist()} == set(
        map(tuple, space.codes.tolist())
    )
    assert (space.rows_of(legalized) >= 0).tolist() == legal.tolist()
    active = legalized >= 0
    assert (legalized[active] == rows[active]).all()


def test_the_same_error_as_evaluation() -> None:
    parameters = {"a": {"choices": [3, 0, 1]}, "b": {"choices": [5, 0]}}
    rules = [{"rule": "10 % a == 0 or 10 % b == 0"}]
    definition = SpaceDefinition.parse({"parameters": parameters, "constraints": rules}, FACTS)
    with pytest.raises(UserError) as expected:
        reference.count(definition)
    with pytest.raises(UserError) as error:
        LegalSpace.build(definition)
    assert str(error.value) == f"space.constraints[0]: {expected.value}"
    assert "{'a': 3, 'b': 0}" in str(error.value)


@pytest.mark.parametrize("of_trainer", [False, True])
def test_a_rule_that_cannot_be_evaluated_is_named(of_trainer: bool) -> None:
    constraints = [{"rule": "a < 4"}, {"rule": "4 // b >= 1"}]
    definition = SpaceDefinition.parse(
        {
            "parameters": {"a": {"choices": [1, 2]}, "b": {"choices": [2, 0]}},
            "constraints": constraints[: 1 if of_trainer else 2],
        },
        FACTS,
    )
    if of_trainer:
        definition = definition.with_rules([Rule.of("4 // b >= 1", "four blocks")], {})
    where = "the 'four blocks' rule of the trainer" if of_trainer else r"space.constraints\[1\]"
    with pytest.raises(UserError, match=f"^{where}: cannot evaluate '4 // b >= 1' .* 'b == 0 or"):
        LegalSpace.build(definition)


def test_a_condition_that_cannot_be_evaluated_is_named() -> None:
    parameters = {
        "a": {"choices": [1, 0]},
        "b": {"choices": [1, 2], "when": "10 % a == 0"},
        "c": {"choices": [1, 2]},
    }
    rules = [{"rule": "a > 0"}]
    definition = SpaceDefinition.parse({"parameters": parameters, "constraints": rules}, FACTS)
    named = r"^space.parameters.b.when: cannot evaluate '10 % a == 0' with \{'a': 0\}"
    with pytest.raises(UserError, match=named):
        LegalSpace.build(definition)
