"""`events.jsonl`: what a person was told while nobody looked, with the time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.json_object import json_object


@dataclass(frozen=True)
class Event:
    """at: seconds since the epoch."""

    at: float
    text: str


def append_event(path: Path, event: Event) -> None:
    """Adds one line."""
    line = json.dumps({"at": event.at, "text": event.text}, ensure_ascii=False)
    with path.open("a", encoding="utf-8", errors="replace") as file:
        file.write(f"{line}\n")


def read_events(path: Path) -> Sequence[Event]:
    """All of them, oldest first. Lines that are none, such as one cut short, are passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(event for line in lines if (event := _event(line)) is not None)


def _event(line: str) -> Event | None:
    try:
        entry = json_object(line)
        at, text = float(entry["at"]), str(entry["text"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return Event(at, text) if math.isfinite(at) else None
