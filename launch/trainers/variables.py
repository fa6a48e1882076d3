"""What `trainer.env` may hold: values that have one text each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune.errors import UserError
from autotune.space.point import plain

_CANNOT = ("=", "\0")  # as the system keeps `NAME=value` and ends it with a zero byte


def require_variables(env: Mapping[Any, Any]) -> None:
    """Raises UserError for a name or a value that no variable of an environment can have."""
    for name, value in env.items():
        where = f"trainer.env.{name}"
        if not isinstance(name, str) or not name or any(part in name for part in _CANNOT):
            raise UserError(
                f"{where}: {plain(name)} cannot be the name of a variable; give a word such as "
                "OMP_NUM_THREADS"
            )
        if not isinstance(value, (str, int, float)):
            raise UserError(
                f"{where}={plain(value)} must be a text, a number, true or false; {_instead(value)}"
            )
        if isinstance(value, str) and "\0" in value:
            raise UserError(f"{where}={value!r} has a zero byte, which no variable can hold")


def _instead(value: object) -> str:
    if value is None:
        return "leave the variable out, or write '' where it is to be empty"
    return f"a text with such signs is written in quotes, such as '{plain(value)}'"
