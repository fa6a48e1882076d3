"""Points as rows of small integers: translated, and found again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from autotune.space.definition import Parameter
from autotune.space.grouping import LARGEST_KEY, group_rows
from autotune.space.point import Point, canonical

INACTIVE = -1
# Codes are int16, and places are one more.
MOST_CHOICES = 32_000


@dataclass(frozen=True, eq=False)
class Coding:
    """Between the values of some parameters and the positions of their choices."""

    parameters: tuple[Parameter, ...]

    def decode(self, row: ArrayLike) -> Point:
        """The point of a row of codes, -1 where a parameter has no value."""
        pairs = zip(self.parameters, np.asarray(row).tolist(), strict=True)
        return Point({p.name: p.choices[code] for p, code in pairs if code != INACTIVE})

    def encode(self, values: Mapping[str, Any]) -> NDArray[np.int16] | None:
        """The codes of the values, -1 for parameters without one.

        None where a value is no choice, types included, or of no parameter.
        """
        if not values.keys() <= self._code_of.keys():
            return None
        row = np.full(len(self.parameters), INACTIVE, np.int16)
        for column, parameter in enumerate(self.parameters):
            if parameter.name in values:
                code = self._code_of[parameter.name].get(_key(values[parameter.name]))
                if code is None:
                    return None
                row[column] = code
        return row

    @cached_property
    def _code_of(self) -> dict[str, dict[str | None, int]]:
        return {
            p.name: {canonical(choice): code for code, choice in enumerate(p.choices)}
            for p in self.parameters
        }


def _key(value: Any) -> str | None:
    """As the choices are told apart; None for what no file can hold, such as a numpy number."""
    try:
        return canonical(value)
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, eq=False)
class Points(Sequence[Point]):
    """The points of rows of codes, each made when it is asked for.

    codes: array (rows, parameters). A slice is a tuple.
    """

    coding: Coding
    codes: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> Point: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Point, ...]: ...

    def __getitem__(self, index: int | slice) -> Point | tuple[Point, ...]:
        if isinstance(index, slice):
            return tuple(self.coding.decode(row) for row in self.codes[index])
        return self.coding.decode(self.codes[index])

    def __iter__(self) -> Iterator[Point]:
        return (self.coding.decode(row) for row in self.codes)

    def __contains__(self, value: object) -> bool:
        row = self.coding.encode(value) if isinstance(value, Point) else None
        return row is not None and bool(self.finder.rows_of(row[None])[0] >= 0)

    @cached_property
    def finder(self) -> RowIndex:
        """Finds rows of codes."""
        return RowIndex(self.codes, [len(p.choices) for p in self.coding.parameters])


class RowIndex:
    """Finds rows among given ones, none of them twice.

    Columns are packed into keys of 62 bits. Where one does not hold them all, the rank of what
    it holds among the given rows goes into the next.
    """

    def __init__(self, codes: NDArray[np.int16], choices: Sequence[int]) -> None:
        """codes: array (rows, columns). choices: the number of choices of each column."""
        self._sizes = [count + 1 for count in choices]
        self._stages: list[tuple[range, NDArray[np.int64]]] = []
        ranks = np.zeros(len(codes), np.int64)
        column = 0
        while column < len(choices) and len(codes):
            columns = self._fitting(column, int(ranks.max()) + 1)
            keys, ranks = np.unique(self._packed(ranks, codes, columns), return_inverse=True)
            self._stages.append((columns, keys))
            column = columns.stop
        self._row_of = np.argsort(ranks, kind="stable")

    def rows_of(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The number of each row among the given ones, -1 where it is not among them."""
        if not self._stages:
            return np.full(len(codes), -1, np.int64)
        known = ((codes >= INACTIVE) & (codes < np.array(self._sizes) - 1)).all(axis=1)
        ranks = np.zeros(len(codes), np.int64)
        for columns, keys in self._stages:
            wanted = self._packed(ranks, codes, columns)
            ranks = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known &= keys[ranks] == wanted
        return np.where(known, self._row_of[ranks], -1)

    def _fitting(self, first: int, size: int) -> range:
        stop = first
        while stop < len(self._sizes) and size * self._sizes[stop] <= LARGEST_KEY:
            size *= self._sizes[stop]
            stop += 1
        return range(first, stop)

    def _packed(
        self, ranks: NDArray[np.int64], codes: NDArray[np.integer[Any]], columns: range
    ) -> NDArray[np.int64]:
        key = ranks.astype(np.int64)
        for column in columns:
            key = key * self._sizes[column] + (codes[:, column].astype(np.int64) + 1)
        return key


def in_order(codes: NDArray[np.int16]) -> NDArray[np.int16]:
    """The distinct rows sorted by their codes, the first column first."""
    _, first = group_rows(list(codes.T), len(codes))
    return codes[first]
