"""Moments that a calendar holds, and how they are written.

Files of a study are lines of text that may have been damaged or edited, and a number of seconds
need not be a moment.
"""

from __future__ import annotations

from datetime import UTC, datetime

# Within what `datetime` holds (years 1 to 9999) in any time zone.
_BEGIN_S, _END_S = -62_000_000_000.0, 253_370_764_800.0  # in the year 5, and 9999-01-01

UNKNOWN = "unknown"


def is_moment(at: float) -> bool:
    """Whether so many seconds since the epoch are a moment that can be written as a date."""
    return _BEGIN_S <= at < _END_S


def utc_text(at: float) -> str:
    """Such as 2026-11-30 17:12:48, in UTC; `unknown` for a number that is no moment."""
    if not is_moment(at):
        return UNKNOWN
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def local_text(at: float, pattern: str = "%H:%M:%S") -> str:
    """The local time by the pattern of `strftime`; `unknown` for a number that is no moment."""
    return datetime.fromtimestamp(at).strftime(pattern) if is_moment(at) else UNKNOWN
