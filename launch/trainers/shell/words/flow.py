"""Leaving a loop, a function or the script early."""

from __future__ import annotations

from enum import Enum


class Leaving(Enum):
    """What is left, the ones that lead further away last."""

    CONTINUE = "continue"
    BREAK = "break"
    RETURN = "return"
    EXIT = "exit"


class LeaveError(Exception):
    """Raised where a script goes on elsewhere.

    status: what it leaves with, None where that is undecided. levels: loops that are left.
    why: for the end of a script, half a sentence.
    """

    def __init__(
        self, leaving: Leaving, line: int, status: int | None = 0, levels: int = 1, why: str = ""
    ) -> None:
        super().__init__(f"{leaving.value} on line {line}")
        self.leaving = leaving
        self.line = line
        self.status = status
        self.levels = levels
        self.why = why
