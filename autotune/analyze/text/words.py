"""Figures and names as words: the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from autotune.analyze.names import clean, shorten

UNKNOWN = "-"
WIDTH = 100
_BETWEEN = "  "
_NARROWEST = 12


def milliseconds(us: float | None) -> str:
    """Such as `12.3`; two places below 10, three below 1."""
    if us is None:
        return UNKNOWN
    ms = us / 1e3
    places = 1 if abs(ms) >= 10 or ms == 0 else 2 if abs(ms) >= 1 else 3
    return f"{ms:,.{places}f}"


def share(part: float | None, whole: float | None) -> str:
    """Such as `65%`; one place below 10 %."""
    if part is None or not whole:
        return UNKNOWN
    ratio = part / whole
    return f"{ratio:.1%}" if 0 < abs(ratio) < 0.0995 else f"{ratio:.0%}"


def milliseconds_and_share(us: float, whole_us: float) -> str:
    """Such as `12.3 (65%)`; `0` alone, so that what is there stands out."""
    if not us or not whole_us:
        return milliseconds(us) if us else "0"
    return f"{milliseconds(us)} ({share(us, whole_us)})"


def gigabytes_per_s(bandwidth: float | None) -> str:
    """Such as `17.5`."""
    return UNKNOWN if bandwidth is None else f"{bandwidth:,.1f}"


def path_text(path: Path) -> str:
    """A path that can be printed, also where its name is no valid text."""
    return clean(str(path))


def count_of(number: int, noun: str) -> str:
    """Such as `1 step`, `2 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def heading(title: str, note: str = "") -> Text:
    """A section's title, after an empty line."""
    text = Text("\n").append(title, style="bold")
    return text.append(f"  ({note})", style="dim") if note else text


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
    shortened: Callable[[str, int], str] = shorten,
) -> Table:
    """Columns of plain text; all but the first `left` are figures. Those that say nothing go.

    Names in the first column are shortened to what the figures leave of the line.
    """
    kept = [0] + [
        at for at in range(1, len(header)) if any(row[at] not in (UNKNOWN, "") for row in rows)
    ]
    widths = [max(len(row[at]) for row in (header, *rows)) for at in kept[1:]]
    room = max(WIDTH - sum(widths) - len(_BETWEEN) * len(widths), _NARROWEST)
    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, len(_BETWEEN), 0, 0))
    for at in kept:
        made.add_column(header[at], justify="left" if at < left else "right", no_wrap=True)
    for row in rows:
        made.add_row(Text(shortened(row[0], room)), *(Text(row[at]) for at in kept[1:]))
    return made
