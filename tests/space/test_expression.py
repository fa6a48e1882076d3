"""Rules are read as Python would read them, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.space.expression import Expression, InapplicableError

FACTS = {"model": {"num_heads": 6}, "cluster": {"world_size": 8}}


def value(text: str, **parameters: object) -> object:
    return Expression.parse(text, "here").evaluate({**FACTS, **parameters})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cluster.world_size % sp == 0", True),
        ("model.num_heads % sp == 0", False),
        ("algo != 'ulysses' or model.num_heads % sp == 0", False),
        ("algo in ['ring', 'usp']", False),
        ("1 < sp <= 4", True),
        ("max(sp, 3) ** 2 - 1", 15),
        ("sp // 3 + abs(-2)", 3),
        ("'a' if sp > 2 else 'b'", "a"),
        ("flag == true and not (sp == 1)", True),
        ("len([sp, 2]) == 2", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text, sp=4, algo="ulysses", flag=True) == expected


@given(st.integers(-50, 50), st.integers(1, 50), st.sampled_from(["+", "-", "*", "//", "%"]))
def test_arithmetic_is_pythons(a: int, b: int, sign: str) -> None:
    expected = {"+": a + b, "-": a - b, "*": a * b, "//": a // b, "%": a % b}[sign]
    assert value(f"a {sign} b", a=a, b=b) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "sp.__class__",
        "model.num_heads.real",
        "[x for x in y]",
        "lambda: 1",
        "open('f')",
        "f'{sp}'",
        "sp if",
        "model",
        "sp is None",
        "max(sp, key=abs)",
        "sp := 3",
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UserError, match="allowed are numbers"):
        Expression.parse(text, "space.constraints[0]")


def test_a_huge_power_does_not_hang() -> None:
    with pytest.raises(UserError, match="exponent"):
        value("9 ** 9 ** 9", sp=1)


def test_an_inactive_parameter_makes_a_rule_inapplicable() -> None:
    rule = Expression.parse("sp % degree == 0", "here")
    assert rule.holds({**FACTS, "sp": 4, "degree": None})
    assert not rule.holds({**FACTS, "sp": 4, "degree": 3})
    with pytest.raises(InapplicableError):
        rule.evaluate({**FACTS, "sp": 4, "degree": None})


def test_an_inactive_parameter_can_be_compared() -> None:
    assert value("algo != 'ulysses'", algo=None) is True


def test_unknown_names_are_answered_with_the_closest() -> None:
    rule = Expression.parse("cluster.word_size % sp_degre == 0", "here")
    with pytest.raises(UserError, match=r"'sp_degre'.*did you mean 'sp_degree'"):
        rule.check_names({"sp_degree": None}, FACTS, "space.constraints[0]")
    rule = Expression.parse("cluster.word_size > 1", "here")
    with pytest.raises(UserError, match=r"did you mean 'cluster\.world_size'"):
        rule.check_names({}, FACTS, "space.constraints[0]")


def test_a_type_error_names_the_values() -> None:
    with pytest.raises(UserError, match=r"cannot evaluate.*two"):
        value("8 % sp == 0", sp=["two"])


def test_a_division_by_zero_says_how_to_guard_the_rule() -> None:
    with pytest.raises(UserError, match=r"'sp == 0 or ...' allows it, 'sp != 0 and ...' does not"):
        value("8 % sp == 0", sp=0, flag=False)
    with pytest.raises(UserError, match=r"'NAME == 0 or ...' allows it"):
        value("8 % (sp - 1) == 0", sp=1)
