"""A rank's output as lines that can be searched: without colours, bars and labels."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

# The head holds refused configurations and broken environments, the tail what ended the rank.
_HEAD_CHARS = 64 << 10
_TAIL_CHARS = 256 << 10
# Of a line without end: its two ends.
_LINE_CHARS = 4000

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

# What launchers put before each line: torchrun and PyTorch, `torchrun --tee`, mpirun, Ray.
_LABEL = re.compile(
    r"(?:\[rank(?P<rank>[0-9]+)\]: ?|\[default[0-9]+\]: ?"
    r"|(?:\S+Z: )?\[[0-9]+,(?P<mpi>[0-9]+)\]<std(?:err|out)>: ?|\([^\n()]*\bpid=[0-9]+[^\n()]*\) )"
)
_NAMED = re.compile(r"\[rank(?P<a>[0-9]+)\]|\[Rank (?P<b>[0-9]+)\]|\bRankID:(?P<c>[0-9]+)")

_DATED = re.compile(
    r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[-T ]([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)"
)
# glog, as in `[E321 02:07:08.408271257`: a letter, the month and the day.
_GLOG = re.compile(r"\b[EWIF][0-9]{3,4} ([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)")

_MESSAGE_LINES = 15
# A message ends before the next traceback, exception, entry of a log or empty line. torch_npu's
# own go on with `[ERROR] 2025-04-08-18:07:20 (PID:...` and CANN's with `TraceBack`.
_NEXT = re.compile(
    r"$|[^\n]*Traceback \(most recent call last\)|\[?[EWIF][0-9]{3,4} [0-9]{2}:"
    r"|(?:\w+\.)*\w+(?:Error|Exception): |terminate called"
)


@dataclass(frozen=True)
class Line:
    """One line. number: its place in the log. rank: that it names, None where it names none.

    body: the line without its launcher's label. label: that label, which tells the ranks apart
    in a log that they share.
    """

    number: int
    body: str
    label: str = ""
    rank: int | None = None

    @property
    def time_s(self) -> float | None:
        """Seconds since midnight at which it was written, where it says so."""
        match = _DATED.search(self.body) or _GLOG.search(self.body)
        if match is None:
            return None
        hours, minutes, seconds = match.groups()
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


@dataclass(frozen=True)
class Log:
    """The lines of one log, in order."""

    lines: tuple[Line, ...]

    @classmethod
    def parse(cls, text: str) -> Log:
        """Of a log of any length, of which its head and its tail are looked at."""
        if len(text) > _HEAD_CHARS + _TAIL_CHARS:
            text = f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
        return cls(tuple(_line(n, raw) for n, raw in enumerate(plain_lines(text))))

    @cached_property
    def text(self) -> str:
        """All bodies, one a line."""
        return "\n".join(line.body for line in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        starts, position = [], 0
        for line in self.lines:
            starts.append(position)
            position += len(line.body) + 1
        return starts

    def message_at(self, number: int) -> tuple[Line, ...]:
        """The lines of the message that begins in a line: that one and those of its rank."""
        first = self.lines[number]
        message = [first]
        for line in self.lines[number + 1 : number + _MESSAGE_LINES]:
            if line.label != first.label:
                continue
            if _NEXT.match(line.body):
                break
            message.append(line)
        return tuple(message)

    def line_at(self, position: int) -> Line:
        """The line that holds a position of `text`."""
        return self.lines[bisect_right(self._starts, position) - 1]


def plain_lines(text: str) -> list[str]:
    """The lines without colours and controls; what a bar overwrote is a line of its own."""
    return [_CONTROLS.sub("", line) for line in _ESCAPES.sub("", text).splitlines()]


def _line(number: int, raw: str) -> Line:
    if len(raw) > 2 * _LINE_CHARS:
        raw = f"{raw[:_LINE_CHARS]} {raw[-_LINE_CHARS:]}"
    match = _LABEL.match(raw)
    if match is None:
        named = _NAMED.search(raw)
        return Line(number, raw, rank=_number(named))
    return Line(number, raw[match.end() :], match.group().strip(), _number(match))


def _number(match: re.Match[str] | None) -> int | None:
    groups = [] if match is None else [group for group in match.groups() if group is not None]
    return int(groups[0]) if groups else None
