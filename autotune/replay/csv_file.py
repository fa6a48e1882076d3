"""CSV text -> cells, with the lines of the file."""

from __future__ import annotations

import csv
import io

from autotune.errors import UserError
from autotune.replay.raw import Cell, RawTable, text_cell

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_LONGEST_CELL = 100_000  # characters


def read_csv(name: str, text: str) -> RawTable:
    """The cells of CSV text whose first line names the columns. Raises UserError.

    Blank lines are passed over.
    """
    # The limit is one of the whole process; nobody here lowers it.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: tuple[str, ...] | None = None
    rows: list[list[Cell]] = []
    lines: list[int | str] = []
    begin = 1
    try:
        for cells in reader:
            line, begin = begin, reader.line_num + 1
            if not any(cell.strip() for cell in cells) and len(cells) <= 1:
                continue
            longest = max(map(len, cells))
            if longest > _LONGEST_CELL:
                raise UserError(
                    f"{name}, line {line}: this is no CSV of measurements: a cell has {longest} "
                    "characters; is a quote missing?"
                )
            if columns is None:
                columns = _header(name, cells)
                continue
            if len(cells) != len(columns):
                raise UserError(
                    f"{name}, line {line}: {len(cells)} cells, but the header names "
                    f"{len(columns)} columns; decimals need a point, and text with a comma needs "
                    "quotes"
                )
            rows.append([text_cell(cell) for cell in cells])
            lines.append(line)
    except csv.Error as error:
        raise UserError(f"{name}, line {reader.line_num}: this is no CSV: {error}") from None
    if columns is None:
        raise UserError(
            f"{name} is empty; the first line names the columns: a column a parameter, and "
            "batch_time_s"
        )
    return RawTable(name, columns, rows, "line", lines)


def _header(name: str, cells: list[str]) -> tuple[str, ...]:
    for sign, called in _OTHER_SEPARATORS.items():
        if len(cells) == 1 and sign in cells[0]:
            raise UserError(
                f"{name} separates its columns with {called}; separate columns with commas, and "
                "write decimals with a point"
            )
    return checked_columns(name, [cell.strip() for cell in cells])


def checked_columns(name: str, columns: list[str]) -> tuple[str, ...]:
    """The names of the columns. Raises UserError for one without a name, or two alike."""
    for number, column in enumerate(columns, start=1):
        if not column:
            raise UserError(
                f"{name}: column {number} has no name; name it or leave it out "
                "(pandas: to_csv(index=False))"
            )
        if column in columns[: number - 1]:
            raise UserError(f"{name}: two columns are called {column!r}; name each once")
    return tuple(columns)
