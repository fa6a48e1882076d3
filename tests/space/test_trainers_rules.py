"""A trainer's rules in a user's space: bound to what the user's files say."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.errors import UserError
from autotune.space.definition import Rule, SpaceDefinition
from autotune.space.expression import Expression
from autotune.space.legal import LegalSpace

FACTS: dict[str, dict[str, Any]] = {
    "model": {"heads": 8, "unknown": None},
    "cluster": {"world_size": 4},
}


def definition(**rest: Any) -> SpaceDefinition:
    parameters = {
        "sp": {"choices": [1, 2, 4]},
        "kind": {"choices": ["ring", "usp"], "when": "sp > 1"},
    }
    return SpaceDefinition.parse({"parameters": parameters, **rest}, FACTS)


def points(made: SpaceDefinition) -> list[dict[str, Any]]:
    return [dict(point) for point in LegalSpace.build(made).points]


@pytest.mark.parametrize(
    ("rule", "fixed", "legal"),
    [
        ("sp <= most", {"most": 2}, 3),
        ("sp * micro <= 4", {"micro": 4}, 1),
        # What the space varies is not taken from the files.
        ("sp <= 2", {"sp": 1}, 3),
        ("kind != 'usp' or name == 'fast'", {"name": 'it\'s "slow"'}, 3),
        ("name in ['a', 'b']", {"name": "b"}, 5),
        ("modules != None", {"modules": ["x.{*}", "y"]}, 5),
        ("sp == 1 or modules != None", {"modules": None}, 1),
        ("not flag or sp == 1", {"flag": True}, 1),
        ("sp - low > 0", {"low": -1}, 5),
        # An arithmetic with a value that is not there says nothing.
        ("sp * gone > 9", {"gone": None}, 5),
        ("max(sp, low) == 2", {"low": 2}, 3),
        ("model.heads % sp == 0", {}, 5),
        ("(1 if sp == one else sp) < cluster.world_size", {"one": 1}, 3),
    ],
)
def test_a_rule_over_parameters_and_fixed_values(
    rule: str, fixed: dict[str, Any], legal: int
) -> None:
    made = definition().with_rules([Rule.of(rule, "because")], fixed)
    assert len(points(made)) == legal


def test_the_users_constraints_hold_too_and_say_whose_they_are() -> None:
    made = definition(constraints=[{"rule": "sp != 2"}])
    made = made.with_rules([Rule.of("sp < 4", "too many")], {})
    assert points(made) == [{"sp": 1}]
    assert [(rule.reason, rule.is_trainers) for rule in made.rules] == [
        ("sp != 2", False),
        ("too many", True),
    ]


def test_a_space_that_the_files_make_empty_is_told_with_the_reason() -> None:
    made = definition().with_rules([Rule.of("modules != None", "needs modules")], {"modules": None})
    with pytest.raises(UserError, match=r"the space is empty(.|\n)*needs modules"):
        points(made)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("model.layers > 1", r"model\.layers is not known.*give model\.dims\.layers=NUMBER"),
        ("model.unknown > 1", r"give model\.dims\.unknown=NUMBER"),
        ("cluster.sockets == 1", r"cluster\.sockets is not known"),
        ("nope == 1", "the trainer's rule 'because'.*unknown parameter 'nope'"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_told(rule: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        definition().with_rules([Rule.of(rule, "because")], {})


def test_values_stand_in_the_place_of_names_alone() -> None:
    expression = Expression.parse("len(a) > 1 and 'a' in a and model.a == b", "here")
    bound = expression.with_values({"a": ["a", "c"], "len": 3})
    assert bound.names == {"b"}
    assert bound.facts == {"model.a"}
    assert bound.evaluate({"model": {"a": 5}, "b": 5}) is True
    assert expression.with_values({"other": 1}) is expression


def test_precedence_stays() -> None:
    expression = Expression.parse("10 - a ** 2 % b", "here")
    assert expression.with_values({"a": -3, "b": 4}).evaluate({}) == 10 - (-3) ** 2 % 4
