"""The SQLite files that `export_type` Db writes: opening them and asking what is there.

`ascend_pytorch_profiler_<rank>.db` (`ascend_pytorch_profiler.db` without a rank) has tasks, host
operators and memory, in nanoseconds and bytes; names are numbers of the table STRING_IDS.
`analysis.db` has step times in microseconds and communication in milliseconds and MB of 1e6
bytes. Tables: torch_npu 2.13, `_constant.py`, and CANN's "Description of .db Data Exported by
msprof".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from autotune.errors import UserError


class BrokenDatabaseError(UserError):
    """The file is no SQLite database, or one that was cut."""


class Database:
    """One open file, read-only."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table is there, with these columns."""
        found = {row[1] for row in self.rows("SELECT * FROM pragma_table_info(?)", table)}
        return bool(found) and found.issuperset(columns)

    def rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query. Raises `BrokenDatabaseError`."""
        try:
            yield from self._connection.execute(query, values)
        # A broken file may break the text of sqlite's own message.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise BrokenDatabaseError(f"{self.path} cannot be read: {error}") from error


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """The database, closed again at the end. Raises `BrokenDatabaseError`."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise BrokenDatabaseError(f"{path} cannot be opened: {error}") from error
    connection.text_factory = _text
    with closing(connection):
        yield Database(path, connection)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
