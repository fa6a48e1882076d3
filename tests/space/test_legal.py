"""The legal points of a space, against plain enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace

FACTS = {"model": {"num_heads": 6}, "cluster": {"world_size": 8}}
SP_SPACE: dict[str, Any] = {
    "parameters": {
        # On purpose not in the order of their conditions.
        "ulysses_degree": {"choices": [2, 4], "ordered": True, "when": "sp_algorithm == 'usp'"},
        "sp_algorithm": {"choices": ["ulysses", "ring", "usp"], "when": "sp_degree > 1"},
        "sp_degree": {"choices": [1, 2, 4, 8], "ordered": True, "memory": "decreases"},
    },
    "constraints": [
        {
            "rule": "sp_algorithm != 'ulysses' or model.num_heads % sp_degree == 0",
            "reason": "Ulysses splits attention heads",
        },
        {"rule": "sp_degree % ulysses_degree == 0 and ulysses_degree < sp_degree"},
    ],
}


def build(space: dict[str, Any], **changes: Any) -> LegalSpace:
    return LegalSpace.build(SpaceDefinition.parse({**space, **changes}, FACTS))


def test_points_that_differ_only_in_inactive_parameters_are_one() -> None:
    space = build(SP_SPACE)
    # By hand: sp 1; sp 2, 4, 8 with ring; sp 2 with ulysses (6 heads); usp 4 = 2x2, 8 = 2x4, 4x2.
    expected = [
        {"sp_degree": 1},
        {"sp_degree": 2, "sp_algorithm": "ulysses"},
        {"sp_degree": 2, "sp_algorithm": "ring"},
        {"sp_degree": 4, "sp_algorithm": "ring"},
        {"sp_degree": 4, "sp_algorithm": "usp", "ulysses_degree": 2},
        {"sp_degree": 8, "sp_algorithm": "ring"},
        {"sp_degree": 8, "sp_algorithm": "usp", "ulysses_degree": 2},
        {"sp_degree": 8, "sp_algorithm": "usp", "ulysses_degree": 4},
    ]
    assert [dict(point) for point in space.points] == expected
    assert space.combinations == 1 + 3 * (1 + 1 + 2)


def test_every_rule_says_how_many_it_excludes() -> None:
    ulysses, usp = build(SP_SPACE).exclusions
    assert (ulysses.excluded, ulysses.alone) == (2, 2)  # 4 and 8 ranks for 6 heads
    assert (usp.excluded, usp.alone) == (3, 3)  # 2/2, 2/4, 4/4


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=1, max_size=4
    ),
    st.integers(1, 4),
)
def test_without_conditions_it_is_the_filtered_product(axes: list[list[int]], modulus: int) -> None:
    names = [f"p{n}" for n in range(len(axes))]
    rule = f"({' + '.join(names)}) % {modulus} == 0"
    wanted = [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*axes)
        if sum(values) % modulus == 0
    ]
    space = {
        "parameters": {name: {"choices": axis} for name, axis in zip(names, axes, strict=True)},
        "constraints": [{"rule": rule}],
    }
    if not wanted:
        with pytest.raises(UserError, match="the space is empty"):
            build(space)
        return
    space["baseline"] = wanted[0]
    assert [dict(point) for point in build(space).points] == wanted


def test_a_rule_that_fails_is_no_matter_where_another_one_excludes_the_point() -> None:
    parameters = {"a": {"choices": [0, 1, 2]}}
    rules = [{"rule": "10 % a == 0"}, {"rule": "a > 0"}]
    space = build({"parameters": parameters, "constraints": rules, "baseline": {"a": 1}})
    assert [point["a"] for point in space.points] == [1, 2]
    with pytest.raises(UserError, match="cannot evaluate"):
        build({"parameters": parameters, "constraints": rules[:1], "baseline": {"a": 1}})


def test_types_of_choices_are_kept() -> None:
    choices = [1, True, "1", None, 1.5, [2, 6], {"a": 1}, "on"]
    space = build({"parameters": {"p": {"choices": choices}}})
    kept = [point["p"] for point in space.points]
    assert kept == choices
    assert [type(value) for value in kept] == [type(value) for value in choices]
    assert len({point.key for point in space.points}) == len(choices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {}}, "space.parameters is empty"),
        ({"parameters": {"a": {"choices": "1,2"}}}, r"a\.choices='1,2' is not a list"),
        ({"parameters": {"a": {"choices": [1, 1]}}}, "names 1 twice"),
        ({"parameters": {"a": {"choices": [1, float("nan")]}}}, "the number nan"),
        ({"parameters": {"a": {"choices": [float("-inf")]}}}, "the number -inf"),
        ({"parameters": {"a": {"choices": [1], "order": True}}}, "did you mean 'ordered'"),
        ({"parameters": {"a": {"choices": [1], "ordered": "yes"}}}, "must be true or false"),
        ({"parameters": {"a": {"choices": [1], "memory": "grows"}}}, "increases"),
        ({"parameters": {"a": [1, 2]}}, "is not a mapping"),
        ({"parameters": {"a": {"choices": [1], "when": "b > 1"}}}, "unknown parameter 'b'"),
        ({"constraints": [{"rule": "sp_degree %"}]}, r"constraints\[0\]: cannot read"),
        ({"constraints": [{"rule": "sp_degre > 1"}]}, "did you mean 'sp_degree'"),
        ({"constraints": [{"rule": "sp_degree > 99"}]}, "the space is empty"),
        ({"constraints": {"rule": "true"}}, "is not a list"),
        ({"baseline": {"sp_degree": 3}}, "is not among its choices; allowed: 1, 2, 4, 8"),
        ({"baseline": {"sp_degre": 1}}, "did you mean 'sp_degree'"),
        ({"baseline": {"sp_degree": 4, "sp_algorithm": "ulysses"}}, "breaks the rule"),
        ({"baseline": {"sp_degree": 1, "sp_algorithm": "ring"}}, "has no effect"),
        ({"baselines": {}}, "did you mean 'baseline'"),
    ],
)
def test_wrong_spaces_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(SP_SPACE, **changes)


def test_conditions_in_a_circle_are_named() -> None:
    parameters = {
        "a": {"choices": [1], "when": "b == 1"},
        "b": {"choices": [1], "when": "a == 1"},
    }
    with pytest.raises(UserError, match="a -> b -> a"):
        build({"parameters": parameters})
