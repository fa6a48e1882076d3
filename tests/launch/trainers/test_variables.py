"""What a trainer's own environment may hold."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.errors import UserError
from launch.trainers.variables import require_variables


def test_texts_numbers_and_booleans() -> None:
    require_variables({"A": "", "B": "x y\n=", "C": 1, "D": -0.5, "E": True, "F_1": "{x}"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BAR", None, r"trainer\.env\.BAR=null must be a text, .* leave the variable out"),
        ("BAR", {"a": 1}, r'trainer\.env\.BAR=\{"a":1\} must be a text, a number, true or false'),
        ("BAR", [1, 2], r"trainer\.env\.BAR=\[1,2\] must be .* in quotes, such as '\[1,2\]'"),
        ("BAR", "a\0b", "has a zero byte"),
        (5, "x", "5 cannot be the name of a variable"),
        ("", "x", "cannot be the name"),
        ("A=B", "x", "A=B cannot be the name"),
    ],
)
def test_what_no_variable_can_be(name: Any, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        require_variables({"GOOD": "x", name: value})
