"""Numbers and timestamps as torch_npu writes them into cells and JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from autotune.analyze.trace_json import nanoseconds
from autotune.errors import UserError

# Times beyond this (the year 2116) are no times.
_LATEST_NS = 1 << 62


def number(cell: object) -> float | None:
    """A finite number; None for blanks, `N/A` and whatever else is none."""
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)):
        return None
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def amount(cell: object) -> float | None:
    """A number that is not negative: a duration, a size, a count."""
    value = number(cell)
    return None if value is None or value < 0 else value


def whole(cell: object) -> int | None:
    """A whole number such as a step, a rank, nanoseconds since the epoch."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell if abs(cell) < _LATEST_NS else None
    value = number(cell)
    return int(value) if value is not None and value == int(value) else None


def moment(cell: object) -> int | None:
    """Microseconds since the epoch, as text or number, in exact nanoseconds."""
    value = nanoseconds(cell)
    return value if value is not None and abs(value) < _LATEST_NS else None


def duration(cell: object) -> int | None:
    """Microseconds in nanoseconds, None where negative or no number."""
    value = moment(cell)
    return None if value is None or value < 0 else value


class BrokenJsonError(UserError):
    """The file ends in the middle, or is no JSON at all."""


def read_json(path: Path) -> Any:
    """The file's content. Raises `BrokenJsonError`, or `UserError` where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise BrokenJsonError(f"{path} is cut or broken: {error}") from error
