"""One legal assignment of all active parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


class Point(Mapping[str, Any]):
    """Values of the active parameters, in the order of the space. Immutable and hashable.

    Two points are equal when their canonical JSON is: `1` and `true` differ, and so do
    `1` and `"1"`.
    """

    __slots__ = ("_key", "_values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._key = canonical(self._values)

    @property
    def key(self) -> str:
        """Canonical JSON of the values, the same whatever the order of the parameters."""
        return self._key

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Point({self})"

    def __str__(self) -> str:
        """As a person reads it: `sp_degree=2 sp_algorithm=ring`."""
        return " ".join(f"{name}={plain(value)}" for name, value in self._values.items())


def canonical(value: Any) -> str:
    """JSON with sorted keys: equal for equal values of equal types, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any) -> str:
    """A value as a person writes it: strings without quotes, the rest as JSON."""
    return value if isinstance(value, str) else canonical(value)
