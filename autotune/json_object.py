"""Lines of JSON that others have written: a killed process, a program of the user's, an editor."""

from __future__ import annotations

import json
from typing import Any


def json_object(text: str | bytes) -> dict[str, Any]:
    """The one JSON object that the text holds.

    Raises ValueError where it holds none: cut short, no JSON, another value, or nested more
    deeply than Python reads.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value
