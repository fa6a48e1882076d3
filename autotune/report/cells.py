"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.config.quantities import format_bytes
from autotune.space.point import Point, plain
from autotune.study.trial_record import TrialRecord


def time_text(record: TrialRecord) -> str:
    """Milliseconds per global batch, empty where unknown."""
    time = record.outcome.batch_time_s
    return "" if time is None else f"{time * 1e3:.1f} ms"


def interval_text(record: TrialRecord) -> str:
    """The 95 % interval in milliseconds."""
    interval = record.outcome.batch_time_ci95_s
    return "" if interval is None else f"{interval[0] * 1e3:.1f} to {interval[1] * 1e3:.1f} ms"


def memory_text(record: TrialRecord) -> str:
    """Peak memory, and how often the allocator had to try again."""
    peak, retries = record.outcome.peak_memory_bytes, record.outcome.alloc_retries
    parts = ["" if peak is None else format_bytes(peak)]
    if retries:
        parts.append(f"{retries} allocator retries")
    return ", ".join(part for part in parts if part)


def duration_text(seconds: float) -> str:
    """In the unit in which it has few digits: seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} hours"


def count_text(number: int, noun: str) -> str:
    """Such as `1 run` and `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def value_text(point: Point, name: str) -> str:
    """A parameter's value."""
    return plain(point[name]) if name in point else "(inactive)"


def shorten(text: str, length: int = 120) -> str:
    """The text, cut to a length."""
    return text if len(text) <= length else text[: length - 1] + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""

    def line(cells: Sequence[str]) -> str:
        escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(escaped)} |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])
