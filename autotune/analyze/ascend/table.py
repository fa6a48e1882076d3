"""CSV tables of torch_npu, column by column name.

Columns differ between versions and levels, cells may end in a tab, the last row may be cut:
a reader asks for the columns that it needs and gets `""` for what is not there.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.errors import UserError

# `Call Stack` cells of a deep model are longer than the csv module's default of 128 KiB.
_LONGEST_CELL = 1 << 24


class Table:
    """One CSV file. `cut` is known when all rows were read: the last one lacks cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut = False
        header = next(self._lines(), [])
        self.columns = [column.strip() for column in header]
        self._index = {_key(column): at for at, column in enumerate(self.columns) if column}

    def __contains__(self, column: str) -> bool:
        return _key(column) in self._index

    def lacks(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that the table does not have."""
        return [column for column in columns if column not in self]

    def rows(self, *columns: str) -> Iterator[tuple[str, ...]]:
        """The cells of these columns, row by row, without blanks around them.

        Raises `UserError` where the file cannot be read.
        """
        at = [self._index.get(_key(column), -1) for column in columns]
        lines = self._lines()
        next(lines, None)
        for line in lines:
            if len(line) < len(self.columns):
                self.cut = True
                continue
            self.cut = False
            yield tuple(line[i].strip() if i >= 0 else "" for i in at)

    def _lines(self) -> Iterator[list[str]]:
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        try:
            with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                yield from (line for line in csv.reader(file) if line)
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from error
        except csv.Error as error:
            raise UserError(f"{self.path} is no CSV: {error}") from error


def _key(column: str) -> str:
    """Versions write `Device_id` and `Device id`, `(us)` and ` (us)`."""
    return column.replace("_", "").replace(" ", "").casefold()
