"""What a program's log looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from autotune.measure.logs.entries import CutEntry, Entry, SkipEntry
from autotune.measure.logs.groups import memory_of, rates_alone, step_of
from autotune.measure.logs.pattern import Found, LinePattern
from autotune.measure.logs.rates import Counted


class LogFormat(Protocol):
    """Reads lines one by one."""

    @property
    def name(self) -> str:
        """As a configuration names it."""
        ...

    @property
    def first_step_counts_again(self) -> bool:
        """Whether the second line's mean holds the first step, which had a line of its own."""
        ...

    @property
    def rates_alone(self) -> frozenset[Counted]:
        """What rates count in lines that tell no time: how many a step has must be known."""
        ...

    def read(self, line: str) -> list[Entry]:
        """What a whole line of plain text says; empty where it is no line of this format."""
        ...


@dataclass(frozen=True)
class PatternFormat:
    """A format of lines that regular expressions find.

    skip_marks: a line that one of them finds says that the update of the step that is printed
    next was skipped.
    """

    name: str
    patterns: tuple[LinePattern, ...]
    skip_marks: tuple[re.Pattern[str], ...] = ()
    first_step_counts_again: bool = False

    @property
    def rates_alone(self) -> frozenset[Counted]:
        """See `LogFormat`."""
        return frozenset(
            counted for pattern in self.patterns for counted in rates_alone(pattern.groups)
        )

    def read(self, line: str) -> list[Entry]:
        """What the line says by each pattern."""
        entries: list[Entry] = [SkipEntry() for mark in self.skip_marks if mark.search(line)]
        for kind, pattern in enumerate(self.patterns):
            for found in pattern.find(line):
                entries.extend(_entries(found, kind, pattern.is_mean))
        return entries


def _entries(found: Found, kind: int, is_mean: bool) -> Iterator[Entry]:
    if not found.is_complete:
        yield CutEntry()
        return
    step = step_of(found.values, kind, found.label, is_mean)
    memory = memory_of(found.values, found.label)
    yield from (entry for entry in (step, memory) if entry is not None)
    if step is None and memory is None:
        yield CutEntry()
