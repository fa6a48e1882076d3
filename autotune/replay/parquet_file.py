"""Parquet -> cells."""

from __future__ import annotations

import io

from autotune.errors import UserError
from autotune.replay.csv_file import checked_columns
from autotune.replay.raw import Cell, RawTable, typed_cell


def read_parquet(name: str, data: bytes) -> RawTable:
    """The cells of a Parquet file; rows are counted from 1. Raises UserError."""
    import pyarrow as pa  # a quarter of a second that other tables need not wait for
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
        names = list(table.column_names)
        # Text that is damaged is found out only when it is looked at.
        values = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{name} cannot be read as Parquet: {first}") from None
    columns = checked_columns(name, names)
    cells = [_cells(name, *pair) for pair in zip(columns, values, strict=True)]
    labels = range(1, table.num_rows + 1)
    return RawTable(name, columns, list(zip(*cells, strict=True)), "row", labels)


def _cells(name: str, column: str, values: list[object]) -> list[Cell]:
    cells = []
    for number, value in enumerate(values, start=1):
        try:
            cells.append(typed_cell(value))
        except TypeError as error:
            raise UserError(f"{name}, row {number}: {column}={value!r}: {error}") from None
    return cells
