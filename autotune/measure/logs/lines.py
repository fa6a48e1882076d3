"""A program's output, bytes as they come -> whole lines of plain text."""

from __future__ import annotations

import re

CUT = "\N{HORIZONTAL ELLIPSIS}"
"""Stands at the end of a line that was cut off, so that no number before it looks whole."""

MAX_LINE_BYTES = 1 << 13
"""Lines that tell of a step are far shorter; what patterns cost grows with the square."""

# A lone return is how progress bars go back to the start of their line.
_END = re.compile(rb"\r\n|[\r\n]")

# Control functions of ECMA-48: sequences (colours), strings (window titles), other escapes.
_ESCAPE = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"
    "|[PX\\]^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    r"|[ -/]*[0-OQ-WYZ\\`-~])"
)
# One that was cut off: its digits must not join a number before it.
_BROKEN_ESCAPE = re.compile("\x1b(?:[PX\\]^_].*|\\[[0-?]*[ -/]*)?")


class LineSplitter:
    """Cuts output into lines at line feeds, carriage returns, and both together.

    The bytes may come in pieces of any size. Lines are decoded as UTF-8, what is none becomes
    U+FFFD, and are freed of terminal escapes. Of a longer line only the first `max_line_bytes`
    are kept, with `CUT` after them.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._held = bytearray()
        self._is_cut = False
        self._after_return = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that end in `data`, without their ends; the rest is held back."""
        if not data:
            return []
        starts_with_end_of_last = self._after_return and data.startswith(b"\n")
        self._after_return = data.endswith(b"\r")
        *ended, rest = _END.split(data[1:] if starts_with_end_of_last else data)
        lines = []
        for part in ended:
            self._hold(part)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def finish(self) -> list[str]:
        """The line that never ended, where there is one, marked with `CUT`."""
        if not self._held:
            return []
        self._is_cut = True
        return [self._take()]

    def _hold(self, part: bytes) -> None:
        room = self._max_line_bytes - len(self._held)
        self._held += part[:room]
        self._is_cut |= len(part) > room

    def _take(self) -> str:
        line = plain_text(self._held.decode("utf-8", errors="replace"))
        if self._is_cut:
            line += CUT
        self._held.clear()
        self._is_cut = False
        return line


def plain_text(text: str) -> str:
    """`text` without terminal escapes; one that was cut off leaves `CUT`."""
    return _BROKEN_ESCAPE.sub(CUT, _ESCAPE.sub("", text))
