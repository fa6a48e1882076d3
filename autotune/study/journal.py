"""`trials.jsonl` and `repeats.jsonl`: the results themselves.

The database can be rebuilt from the first.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from autotune.errors import UserError


class DiskFullError(UserError):
    """There is no room for a result."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(
            f"the disk is full: {path} has no room for the result of trial {number}. All earlier "
            "results are kept. Make room and type the same command: it goes on, and runs that "
            "point again"
        )


class JournalEntry(Protocol):
    """What is kept, one a line."""

    @property
    def number(self) -> int:
        """Its number, which no other entry has."""
        ...

    def to_line(self) -> str:
        """The text of its line, without the end."""
        ...

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Reads a line. Raises ValueError, TypeError, KeyError, IndexError or AttributeError."""
        ...


Entry = TypeVar("Entry", bound=JournalEntry)


@dataclass(frozen=True)
class Journal(Generic[Entry]):
    """An append-only file with one writer. kind: the class of its entries."""

    path: Path
    kind: type[Entry]

    def read(self) -> list[Entry]:
        """All finished trials in the order in which they ended.

        A last line without its end is what a kill in the middle of a write leaves; it is
        passed over. Raises UserError for any other line that cannot be read.
        """
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        records: list[Entry] = []
        numbers: set[int] = set()
        for number, line in enumerate(whole.split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                record = self.kind.from_line(line.decode("utf-8"))
                if record.number in numbers:
                    raise ValueError(f"trial {record.number} is there twice")
                numbers.add(record.number)
                records.append(record)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
                raise UserError(
                    f"{self.path}, line {number} is no trial record ({error}); "
                    "correct it, or take the line out: its point is then measured again"
                ) from None
        return records

    def restore(self, entries: Sequence[Entry]) -> bool:
        """Writes the entries again where somebody has removed or emptied the file meanwhile.

        Returns whether that was so. Single lines that were taken out stay out.
        """
        if not entries or (self.path.exists() and self.path.stat().st_size):
            return False
        self.append(*entries)
        return True

    def repair(self) -> int:
        """Cuts off an unfinished last line, so that the next one is not glued to it.

        Returns the number of bytes that were cut off.
        """
        if not self.path.exists():
            return 0
        with self.path.open("r+b") as file:
            content = file.read()
            keep = content.rfind(b"\n") + 1
            if keep == len(content):
                return 0
            file.truncate(keep)
            os.fsync(file.fileno())
        return len(content) - keep

    def append(self, *records: Entry) -> None:
        """Adds finished trials; they are on the disk when this returns.

        Raises `DiskFullError` with the file as it was before.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = b"".join(record.to_line().encode("utf-8") + b"\n" for record in records)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            try:
                while line:
                    line = line[os.write(descriptor, line) :]
                os.fsync(descriptor)
            except OSError as error:
                os.ftruncate(descriptor, before)
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise DiskFullError(self.path, records[0].number) from None
        finally:
            os.close(descriptor)
