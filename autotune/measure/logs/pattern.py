"""One kind of line that a program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from autotune.measure.logs.groups import is_whole
from autotune.measure.logs.labels import label_of

_MOST_IN_A_LINE = 16
"""More are no lines that ran into each other."""


@dataclass(frozen=True)
class Field:
    """A value with its name before it.

    name: the first place where it matches counts. value: must match behind it at once, or the
    value is damaged and there is none. Its named groups hold the value.
    """

    name: re.Pattern[str]
    value: re.Pattern[str]

    def find(self, line: str, start: int, end: int) -> re.Match[str] | None:
        """The value in `line[start:end]`."""
        name = self.name.search(line, start, end)
        return self.value.match(line, name.end(), end) if name else None


@dataclass(frozen=True)
class Found:
    """The texts of the groups that were found whole, and the label before them.

    is_complete: the line holds all that such a line must.
    """

    values: Mapping[str, str]
    label: str | None
    is_complete: bool


@dataclass(frozen=True)
class LinePattern:
    """Regular expressions whose named groups (`autotune.measure.logs.groups`) hold values.

    start: where it begins; it may hold groups itself. fields: looked for from there to where
    the next one begins; the first that holds a group gives its value. needs: groups that must
    be there, and end: what must match behind the start, else the line was cut off. is_mean:
    its time is the mean over the steps since the line before.
    """

    start: re.Pattern[str]
    fields: tuple[Field, ...] = ()
    needs: tuple[str, ...] = ()
    end: re.Pattern[str] | None = None
    is_mean: bool = True

    @property
    def groups(self) -> frozenset[str]:
        """All names that a line may give a value to."""
        parts = [self.start, *(part for field in self.fields for part in (field.name, field.value))]
        return frozenset(name for part in parts for name in part.groupindex)

    def find(self, line: str) -> list[Found]:
        """All that the line holds; several where ranks wrote into each other's lines."""
        starts = list(self._starts(line))
        ends = [*(start.start() for start in starts), len(line)][1:]
        return [self._found(start, end) for start, end in zip(starts, ends, strict=True)]

    def _starts(self, line: str) -> Iterator[re.Match[str]]:
        for match in islice(self.start.finditer(line), _MOST_IN_A_LINE):
            yield self._innermost(match)

    def _innermost(self, match: re.Match[str]) -> re.Match[str]:
        """The last place where it begins, if a match runs over a line that was cut off."""
        line, end = match.string, match.end()
        position = _first_value(match) + 1
        while inner := self.start.search(line, position, end):
            if _is_inside_number(line, inner.start()):
                position = inner.start() + 1
                continue
            match, position = inner, _first_value(inner) + 1
        return match

    def _found(self, start: re.Match[str], end: int) -> Found:
        line = start.string
        matches = [start, *(field.find(line, start.end(), end) for field in self.fields)]
        values: dict[str, str] = {}
        for match in filter(None, matches):
            for name, text in match.groupdict().items():
                if text is not None and is_whole(name, match):
                    values.setdefault(name, text)
        label = label_of(line[: _first_value(start)])
        return Found(values, label, self._is_complete(start, end, values))

    def _is_complete(self, start: re.Match[str], end: int, values: Mapping[str, str]) -> bool:
        if any(name not in values for name in self.needs):
            return False
        if self.end is None:
            return True
        match = self.end.match(start.string, start.end())
        return match is not None and match.end() <= end


def _first_value(match: re.Match[str]) -> int:
    """Where the first group begins."""
    starts = [match.start(name) for name in match.groupdict() if match[name] is not None]
    return min(starts, default=match.start())


def _is_inside_number(line: str, position: int) -> bool:
    return bool(re.match(r"[\d.,]{2}", line[position - 1 : position + 1]))
