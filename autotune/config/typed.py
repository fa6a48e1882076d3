"""Plain configuration data -> frozen dataclasses, with errors that name the key.

OmegaConf's structured configs do this only for dataclasses that are not frozen, and name
a misspelt key without the one that was meant.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from autotune.errors import UserError, did_you_mean

T = TypeVar("T")
_NAMES = {
    int: "an integer",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "a mapping",
}


def build(cls: type[T], data: object, where: str = "") -> T:
    """An instance of the dataclass `cls` from a mapping. Raises UserError.

    `where` is the dotted key of `data`, empty at the top.
    """
    prefix = f"{where}." if where else ""
    if not isinstance(data, Mapping):
        raise UserError(f"{where}={data!r} must be a mapping of {', '.join(_names(cls))}")
    for key in data:
        if key not in _names(cls):
            raise UserError(f"unknown key {prefix}{key}; {did_you_mean(str(key), _names(cls))}")
    hints = get_type_hints(cls)
    values = {}
    for item in fields(cls):  # type: ignore[arg-type]  # every caller passes a dataclass
        if item.name in data:
            values[item.name] = _convert(hints[item.name], data[item.name], prefix + item.name)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise UserError(f"the key {prefix}{item.name} is missing; add it")
    try:
        return cls(**values)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _names(cls: type[Any]) -> list[str]:
    return [item.name for item in fields(cls)]


def _convert(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if get_origin(hint) in (Union, types.UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        return _convert(next(a for a in get_args(hint) if a is not type(None)), value, where)
    if is_dataclass(hint):
        return build(hint, value, where)  # type: ignore[arg-type]  # hint is a class here
    plain = get_origin(hint) or hint
    if plain is tuple:
        if not isinstance(value, (list, tuple)):
            raise UserError(f"{where}={value!r} must be a list, such as {_listed(hint, value)}")
        return tuple(_convert(get_args(hint)[0], item, where) for item in value)
    if plain is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if plain is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)  # a study named 2026 is still a name
    if not isinstance(value, plain) or (plain is not bool and isinstance(value, bool)):
        raise UserError(f"{where}={value!r} must be {_NAMES[plain]}")
    return dict(value) if plain is dict else value


def _listed(hint: Any, value: Any) -> str:
    """A list of what was given, where it can be one of its items."""
    if get_args(hint)[0] is str and isinstance(value, str) and value:
        return f"[{value}]"
    return "[0]"
