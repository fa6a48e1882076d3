"""The exceptions in a log: what was raised, where, and from what.

Python's traceback is a header, frames and the line of the exception; one that led to another
comes before it. A C++ exception that nobody caught has a line `what():`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.measure.failures.log_lines import Line

_HEADER = "Traceback (most recent call last)"
_LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_IGNORED = ("Exception ignored in", "Exception in thread")
_FRAME = re.compile(r'\s*File "([^\n"]+)", line ([0-9]+)(?:, in (.+))?')
# In a traceback any name ends it, elsewhere only one that says what it is.
_END = re.compile(r"[A-Za-z_][\w.]*(?:: |:?$)")
_LONE = re.compile(r"(?:\w+\.)*(?:[A-Za-z_]\w*(?:Error|Exception|Interrupt)|Exception)(?:: |:?$)")
_WHAT = re.compile(r"\s*what\(\):\s+")
_LIBRARY = re.compile(r"site-packages/|dist-packages/|/lib/python[0-9]|^<|/bin/\w+$")


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback."""

    path: str
    line: int
    function: str

    @property
    def is_library(self) -> bool:
        """Not the user's own code."""
        return bool(_LIBRARY.search(self.path))

    def __str__(self) -> str:
        place = "/".join(self.path.split("/")[-2:])
        return f"{place}:{self.line} in {self.function}"


@dataclass(frozen=True)
class Raised:
    """One exception. line: in which it ends. leads_on: another one was raised from it.

    is_original: it is what a worker raised, told after the exception that says so.
    """

    line: Line
    text: str
    frames: tuple[Frame, ...] = ()
    leads_on: bool = False
    is_original: bool = False

    @property
    def frames_text(self) -> str:
        """`path in function` of every frame, one a line, for signatures."""
        return "\n".join(f"{frame.path} in {frame.function}" for frame in self.frames)

    @property
    def place(self) -> str | None:
        """The innermost frame of the user's own code, of any code where there is none."""
        own = [frame for frame in self.frames if not frame.is_library] or list(self.frames)
        return str(own[-1]) if own else None


def find_exceptions(lines: Sequence[Line]) -> list[Raised]:
    """All exceptions in the order in which they end; those that Python ignored left out.

    Ranks that share a log are told apart by their labels.
    """
    labels = dict.fromkeys(line.label for line in lines)
    each = (_of_one(line for line in lines if line.label == label) for label in labels)
    return sorted((raised for found in each for raised in found), key=lambda r: r.line.number)


def _of_one(lines: Iterable[Line]) -> list[Raised]:
    found: list[Raised] = []
    frames: list[Frame] = []
    is_open = is_ignored = is_original = False
    for line in lines:
        body = line.body
        if body.strip() in _LINKS and found:
            last = found[-1]
            found[-1] = Raised(last.line, last.text, last.frames, True, last.is_original)
        elif body.lstrip().startswith(_IGNORED):
            is_ignored = True
        elif _HEADER in body:
            frames, is_open = [], True
            is_original = body.lstrip().startswith("Original")
        elif is_open and (match := _FRAME.match(body)):
            frames.append(Frame(match[1], int(match[2]), (match[3] or "").strip()))
        elif text := _exception_text(body, is_open and bool(frames)):
            if not is_ignored:
                found.append(Raised(line, text, tuple(frames), is_original=is_original))
            frames, is_open, is_ignored, is_original = [], False, False, False
    return found


def _exception_text(body: str, in_traceback: bool) -> str | None:
    if match := _WHAT.match(body):
        return body[match.end() :].strip()
    if (_END if in_traceback else _LONE).match(body):
        return body.strip()
    return None


def chains(found: Sequence[Raised]) -> list[list[Raised]]:
    """The exceptions grouped by what led to what; of a worker's, with the one that it became."""
    grouped: list[list[Raised]] = []
    for raised in found:
        if grouped and (grouped[-1][-1].leads_on or raised.is_original):
            grouped[-1].append(raised)
        else:
            grouped.append([raised])
    return grouped
