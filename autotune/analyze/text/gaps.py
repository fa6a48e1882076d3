"""Pipeline bubbles and idle gaps of the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.names import clean, kernel
from autotune.analyze.profile import Gap
from autotune.analyze.summary import ProfileSet
from autotune.analyze.text.words import count_of, heading, table
from autotune.analyze.text.words import milliseconds as ms

_LONGEST = 5
_WAITS_FOR = {
    "receive": "pipeline stage",
    "host": "host",
    "communication": "communication",
}


def gaps(profiles: ProfileSet) -> Iterator[RenderableType]:
    """By cause, then the longest with what ran around them."""
    found = [
        (label, gap)
        for label, profile in zip(profiles.labels, profiles.profiles, strict=True)
        for gap in profile.gaps
    ]
    if not found:
        return
    yield heading("Pipeline bubbles and idle gaps")
    yield Text(f"{_totals([gap for _, gap in found])}.")
    several = len(profiles.profiles) > 1
    longest = sorted(found, key=lambda each: -each[1].duration_us)[:_LONGEST]
    rows = [_row(label if several else "", gap) for label, gap in longest]
    yield table(["waits for", "", "after", "before", "ms"], rows, left=4)


def _totals(found: Sequence[Gap]) -> str:
    causes = dict.fromkeys(gap.cause for gap in found)
    return "; ".join(
        f"waiting for {_WAITS_FOR.get(cause, clean(cause))}: "
        f"{ms(sum(g.duration_us for g in found if g.cause == cause))} ms in "
        f"the {count_of(sum(1 for g in found if g.cause == cause), 'longest gap')}"
        for cause in causes
    )


def _row(label: str, gap: Gap) -> Sequence[str]:
    step = "" if gap.step is None else f"step {gap.step}"
    return [
        _WAITS_FOR.get(gap.cause, clean(gap.cause)),
        ", ".join(part for part in (clean(label), step) if part),
        kernel(gap.before, 28) or "(start)",
        kernel(gap.after, 28) or "(end)",
        ms(gap.duration_us),
    ]
