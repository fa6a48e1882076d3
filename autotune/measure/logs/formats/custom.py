"""A format that a user writes: regular expressions with named groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autotune.errors import UserError, did_you_mean
from autotune.measure.logs.format import PatternFormat
from autotune.measure.logs.groups import GROUPS, MEMORY_GROUPS, TIMING_GROUPS
from autotune.measure.logs.pattern import LinePattern

EXAMPLE = r"'step (?P<step>\d+) loss (?P<loss>\S+) time (?P<time>[\d.]+ ?m?s)'"


def custom_format(patterns: object, key: str, name: str = "custom") -> PatternFormat:
    """The format whose lines the patterns find.

    patterns: a regular expression or several, one a kind of line, as a list or by a name of the
    user's own; what a group holds is told by its name (`autotune.measure.logs.groups.GROUPS`).
    A time is taken for the mean over the steps since the line before. key: where they were
    given, for errors. Raises UserError.
    """
    given = _several(patterns)
    if not given:
        raise UserError(
            f"{key}={patterns!r} is no regular expression and no list of them; "
            f"write one a kind of line, such as {EXAMPLE}"
        )
    compiled = [_compile(pattern, key) for pattern in given]
    if not any(_groups(pattern, TIMING_GROUPS) for pattern in compiled):
        raise UserError(
            f"{key} has no pattern that reads how long a step took; name one of "
            f"{', '.join(TIMING_GROUPS)} beside `step`, such as {EXAMPLE}"
        )
    return PatternFormat(name, tuple(LinePattern(pattern) for pattern in compiled))


def _several(patterns: object) -> Sequence[object]:
    if isinstance(patterns, str):
        return [patterns]
    if isinstance(patterns, Mapping):
        return list(patterns.values())
    return patterns if isinstance(patterns, Sequence) else []


def _compile(pattern: object, key: str) -> re.Pattern[str]:
    if not isinstance(pattern, str):
        raise UserError(f"{key} holds {pattern!r}; write regular expressions, such as {EXAMPLE}")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{key}: {pattern!r} is no regular expression: {error}; write one such as {EXAMPLE}"
        ) from error
    for group in compiled.groupindex:
        if group not in GROUPS:
            raise UserError(
                f"{key}: {pattern!r} has a group named {group!r}; {did_you_mean(group, GROUPS)}"
            )
    _check_groups(compiled, key)
    return compiled


def _check_groups(pattern: re.Pattern[str], key: str) -> None:
    timing = _groups(pattern, TIMING_GROUPS)
    if len(timing) > 1:
        raise UserError(
            f"{key}: {pattern.pattern!r} reads the time of a step {len(timing)} times, by "
            f"{', '.join(timing)}; keep one"
        )
    if timing and "step" not in pattern.groupindex:
        raise UserError(
            f"{key}: {pattern.pattern!r} reads {timing[0]}, but not of which step; add a group "
            f"named `step`, such as {EXAMPLE}"
        )
    if not timing and not _groups(pattern, MEMORY_GROUPS):
        raise UserError(
            f"{key}: {pattern.pattern!r} reads neither a time nor memory; name a group one of "
            f"{', '.join(TIMING_GROUPS)}, or of {', '.join(MEMORY_GROUPS)}"
        )


def _groups(pattern: re.Pattern[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if name in pattern.groupindex]
