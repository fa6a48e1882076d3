"""Reading plain mappings into frozen dataclasses, with errors a person can act on."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration that cannot be trained with; the message says what is allowed."""


def read_dataclass(cls: type[T], value: object, where: str) -> T:
    """The dataclass `cls` from a mapping, its nested dataclasses included.

    where: the dotted path of `value` in the file, for messages.
    Raises ConfigError for unknown keys, missing keys and wrong types.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} must be a mapping of keys, got {value!r}")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in value:
        if key not in fields:
            raise ConfigError(_unknown_key(f"{where}.{key}", str(key), list(fields)))
    hints = typing.get_type_hints(cls)
    arguments: dict[str, Any] = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = _read_value(hints[name], value[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING:
            raise ConfigError(f"{where}.{name} is missing; {where} needs {', '.join(fields)}")
    return cls(**arguments)


def _unknown_key(path: str, key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown key {path}; {hint}Allowed: {', '.join(known)}"


def _read_value(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        inner = next(arm for arm in typing.get_args(hint) if arm is not types.NoneType)
        return _read_value(inner, value, where)
    if origin is typing.Literal:
        return _read_choice(typing.get_args(hint), value, where)
    if origin is tuple:
        return _read_range(value, where)
    if hasattr(hint, "from_mapping"):
        return _read_by_itself(hint, value, where)
    if dataclasses.is_dataclass(hint):
        return read_dataclass(typing.cast(type[Any], hint), value, where)
    return _read_scalar(hint, value, where)


def _read_by_itself(cls: Any, value: Any, where: str) -> Any:
    """A class that reads and checks plain values by itself, and raises ValueError."""
    try:
        return cls.from_mapping(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _read_choice(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value not in choices or isinstance(value, bool):
        raise ConfigError(f"{where} must be one of {', '.join(map(str, choices))}, got {value!r}")
    return value


def _read_range(value: Any, where: str) -> tuple[int, int]:
    pair = list(value) if isinstance(value, list | tuple) else []
    if len(pair) != 2 or any(not _is_int(item) for item in pair) or not 1 <= pair[0] <= pair[1]:
        raise ConfigError(
            f"{where} must be a range [smallest, largest] of two whole numbers from 1 on, "
            f"got {value!r}"
        )
    return (pair[0], pair[1])


def _read_scalar(hint: type, value: Any, where: str) -> Any:
    if hint is float and (isinstance(value, float) or _is_int(value)):
        return float(value)
    if hint is int and _is_int(value):
        return value
    if hint is str and isinstance(value, str):
        return value
    wanted = {int: "a whole number", float: "a number", str: "text"}[hint]
    raise ConfigError(f"{where} must be {wanted}, got {value!r}")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
