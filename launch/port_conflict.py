"""Whether ranks failed because another process had taken a port."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

_TAIL_BYTES = 64 << 10
_LONGEST_LINE = 200

# torch's TCPStore and gloo print the first two; CANN's EJ0003 and EI0019 read like the third.
_TAKEN = re.compile(r"EADDRINUSE|address already in use|port have been bound|EJ0003", re.IGNORECASE)


def find_port_conflict(records: Iterable[Path], logs: Iterable[Path]) -> str | None:
    """The line that tells of a taken port, or None.

    Where ranks recorded an error, only that counts: a warning about some other port
    in a log must not hide, say, an out-of-memory error.
    """
    errors = [message for path in records for message in _error_messages(path)]
    lines = errors or [line for path in logs for line in _tail(path).splitlines()]
    for line in lines:
        if _TAKEN.search(line):
            return line.strip()[:_LONGEST_LINE]
    return None


def _error_messages(path: Path) -> list[str]:
    messages = []
    for line in _tail(path).splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("event") == "error":
            messages.append(str(record.get("message", "")))
    return messages


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
