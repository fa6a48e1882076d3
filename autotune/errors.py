"""Errors that a person reads, and the exit codes that scripts read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line, part of its contract (docs/design.md)."""

    DONE = 0
    WRONG_INPUT = 2
    NOTHING_FEASIBLE = 3
    NO_DEVICES = 4
    STOPPED = 130


class UserError(Exception):
    """Something that the person at the terminal can mend: shown without a traceback.

    The message names what was given, what is allowed and what to type next.
    """

    exit_code = ExitCode.WRONG_INPUT


class NoDevicesError(UserError):
    """The cluster cannot give the devices that a trial needs."""

    exit_code = ExitCode.NO_DEVICES


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """Words that name what is allowed, the closest names first where there are close ones."""
    names = sorted(set(allowed))
    close = difflib.get_close_matches(given, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(repr(name) for name in close)}?"
    if not names:
        return "there are none to choose from"
    return f"allowed: {', '.join(names)}"
