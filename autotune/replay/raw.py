"""Cells of a recorded table before they mean anything, and where each row stands."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import UserError

Cell = bool | int | float | str | None
"""One cell: None where it is empty. A whole number is an int, however it was written."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False}
_EXACT = 2.0**53  # beyond it a float is no longer a certain whole number


@dataclass(frozen=True)
class RawTable:
    """The cells of a file.

    name: for errors. rows: cells in the order of `columns`. unit, labels: what a row is called
    (`line`, 23). notes: how the file was read, for a person.
    """

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    unit: str
    labels: Sequence[int | str]
    notes: tuple[str, ...] = ()

    def place(self, number: int) -> str:
        """What a person calls the row `number`, such as `line 23`."""
        return f"{self.unit} {self.labels[number]}"

    def error(self, number: int, message: str) -> UserError:
        """An error about one row."""
        return UserError(f"{self.name}, {self.place(number)}: {message}")

    def column(self, name: str) -> list[Cell]:
        """The cells of one column; all empty where the table has none of that name."""
        if name not in self.columns:
            return [None] * len(self.rows)
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def text_cell(text: str) -> Cell:
    """A cell of a text file: a number, true or false, else the text without outer spaces."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return _whole(float(text))
    return _word(text)


def typed_cell(value: Any) -> Cell:
    """A cell of a file that knows types. Raises TypeError for what is no single value."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        # Tables of numbers have NaN where a cell is empty.
        return None if math.isnan(value) else _whole(value)
    if isinstance(value, str):
        return _word(value.strip())
    raise TypeError(f"a {type(value).__name__} is no number, text, true or false")


def _whole(number: float) -> int | float:
    # Columns with an empty cell come out of data frames with 2.0 for 2.
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _word(text: str) -> Cell:
    return _WORDS.get(text.lower(), text) if text else None


@dataclass
class Notes:
    """Rows that were taken with a stated reading, each reading said once."""

    table: RawTable
    _counts: Counter[str] = field(default_factory=Counter)
    _first: dict[str, int] = field(default_factory=dict)

    def add(self, reading: str, number: int) -> None:
        """The row `number` was taken with this reading."""
        self._counts[reading] += 1
        self._first.setdefault(reading, number)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line a reading, with the number of its rows and the first of them."""
        return tuple(
            f"{reading}: {count} (first: {self.table.place(self._first[reading])})"
            for reading, count in self._counts.items()
        )
