"""The parameters that an older study and a new one share, coded as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.space.codes import INACTIVE, Coding
from autotune.space.definition import Parameter
from autotune.space.point import canonical

# Another choice of a parameter that the new study does not have: whatever it is there.
_UNKNOWN = {"unknown": "in the new study"}


@dataclass(frozen=True)
class SharedSpace:
    """Translates older points and newer rows of codes into codes of the same parameters.

    parameters: those that varied in the older study. Each that both have holds the choices of
    both, in order where it is ordered, so that a new choice lies between its neighbours. Each
    that the new study lacks has one more choice, which all its rows take.
    newer: the new study's parameters. seen: how many choices the older study had, a parameter;
    they come first where there is no order.
    """

    parameters: tuple[Parameter, ...]
    newer: tuple[Parameter, ...]
    seen: tuple[int, ...]

    @classmethod
    def of(
        cls, older: Sequence[Mapping[str, Any]], newer: Sequence[Parameter]
    ) -> SharedSpace | None:
        """From the values of the older points; None where nothing that varied is shared."""
        names = dict.fromkeys(name for values in older for name in values)
        varied = [name for name in names if len(_distinct(name, older)) > 1]
        by_name = {parameter.name: parameter for parameter in newer}
        if not any(name in by_name for name in varied):
            return None
        values = [_values(name, older) for name in varied]
        merged = [
            _merged(by_name[name], known)
            if name in by_name
            else Parameter(name, (*known, _UNKNOWN))
            for name, known in zip(varied, values, strict=True)
        ]
        return cls(tuple(merged), tuple(newer), tuple(len(known) for known in values))

    @cached_property
    def geometry(self) -> Geometry:
        """Of the parameters; an unordered choice that the older study lacked is like none."""
        plain = Geometry.of(self.parameters)
        slopes = [
            table if self.parameters[n].ordered else _zero_sum(self.seen[n], len(table))
            for n, table in zip(plain.columns, plain.slopes, strict=True)
        ]
        return replace(plain, slopes=tuple(slopes))

    def older_rows(self, points: Sequence[Mapping[str, Any]]) -> Codes:
        """Codes (points, parameters) of the points that this was made from."""
        coding, names = Coding(self.parameters), {p.name for p in self.parameters}
        rows = [coding.encode({n: v for n, v in p.items() if n in names}) for p in points]
        return np.array(rows, dtype=np.int16).reshape(len(points), len(self.parameters))

    def newer_rows(self, rows: Codes) -> Codes:
        """Codes (rows, parameters) of rows as in `LegalSpace.codes` of the new study."""
        columns = []
        for parameter, (column, table) in zip(self.parameters, self._tables, strict=True):
            if column is None:
                columns.append(np.full(len(rows), len(parameter.choices) - 1, np.int16))
            else:
                columns.append(table[rows[:, column] + 1])
        return np.stack(columns, axis=1)

    @cached_property
    def _tables(self) -> list[tuple[int | None, Codes]]:
        """The new study's column, and its codes + 1 -> codes here, of each parameter."""
        place = {parameter.name: column for column, parameter in enumerate(self.newer)}
        tables: list[tuple[int | None, Codes]] = []
        for parameter in self.parameters:
            column = place.get(parameter.name)
            choices = () if column is None else self.newer[column].choices
            codes = [INACTIVE, *(parameter.index_of(choice) for choice in choices)]
            tables.append((column, np.array(codes, dtype=np.int16)))
        return tables


def _values(name: str, points: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The values that the points have, each once."""
    return list({canonical(p[name]): p[name] for p in points if name in p}.values())


def _distinct(name: str, points: Sequence[Mapping[str, Any]]) -> set[str | None]:
    return {canonical(point[name]) if name in point else None for point in points}


def _merged(parameter: Parameter, values: Sequence[Any]) -> Parameter:
    """The parameter with the choices of both studies; values: those of the older one."""
    others = [value for value in values if value not in parameter]
    if parameter.ordered and not others:
        return parameter
    direction = _direction(parameter.choices)
    if parameter.ordered and direction and all(map(_is_number, others)):
        numbers = sorted((*parameter.choices, *others), reverse=direction < 0)
        return replace(parameter, choices=tuple(numbers))
    # Unordered, as it is not known where the others belong.
    had = {canonical(value) for value in values}
    new = [choice for choice in parameter.choices if canonical(choice) not in had]
    return replace(parameter, choices=(*values, *new), ordered=False)


def _zero_sum(seen: int, size: int) -> Floats:
    """A table of `Geometry.slopes` of unordered choices, in which only the first ones vary."""
    first = Parameter("first", tuple(range(max(seen, 1))))
    table = np.zeros((size, size))
    table[: seen + 1, : seen + 1] = Geometry.of([first]).slopes[0][: seen + 1, : seen + 1]
    return table


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _direction(choices: Sequence[Any]) -> int:
    """1 where numbers rise from one to the next, -1 where they fall, else 0."""
    if not all(map(_is_number, choices)):
        return 0
    if all(one < other for one, other in pairwise(choices)):
        return 1
    return -1 if all(one > other for one, other in pairwise(choices)) else 0
