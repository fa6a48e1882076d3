"""Memory: the peak of each component, when it was, and what held it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.findings.memory import (
    ALLOCATOR,
    PROCESS,
    ComponentPeak,
    component_peaks,
    held_by,
)
from autotune.analyze.names import clean, kernel
from autotune.analyze.profile import MemoryUse
from autotune.analyze.summary import ProfileSet
from autotune.analyze.text.words import UNKNOWN, count_of, heading, share, table
from autotune.analyze.text.words import milliseconds as ms
from autotune.config.quantities import format_bytes

_HOLDERS = 5
_MOST_RANKS = 4
_NOTHING = 0.01
_MEANINGS = {
    ALLOCATOR: "torch's allocator",
    "GE": "the graph engine's",
    PROCESS: "the process, as the driver counts it",
}


def memory(profiles: ProfileSet) -> Iterator[RenderableType]:
    """Components by rank, then the holders of the largest peak."""
    used = [
        (label, profile.memory)
        for label, profile in zip(profiles.labels, profiles.profiles, strict=True)
        if profile.memory is not None and profile.memory.peaks_bytes
    ]
    if not used:
        return
    used.sort(key=lambda each: -_peak(each[1]))
    shown = used[:_MOST_RANKS]
    note = f"the {_MOST_RANKS} largest of {len(used)} ranks" if len(used) > _MOST_RANKS else ""
    yield heading("Memory of the device at its peak", note)
    several = len(profiles.profiles) > 1
    rows = [_row(label, peak) for label, use in shown for peak in _large(use, several)]
    if several:
        yield table(["", "component", "allocated", "reserved"], rows, left=2)
    else:
        yield table(["", "allocated", "reserved"], [row[1:] for row in rows])
    yield from _legend({row[1] for row in rows})
    label, largest = used[0]
    yield from _outside(largest, label)
    yield from _holders(largest, label)


def _legend(components: Set[str]) -> Iterator[Text]:
    words = [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in components]
    if words:
        yield Text(f"{'; '.join(words)}.", "dim")


def _peak(use: MemoryUse) -> float:
    return max(use.peaks_bytes.values())


def _large(use: MemoryUse, several: bool) -> list[ComponentPeak]:
    """CANN has dozens of modules that hold next to nothing; of several ranks, none is shown."""
    peaks = [peak for peak in component_peaks(use) if peak.bytes >= _NOTHING * _peak(use)]
    if not several:
        return peaks
    return [p for p in peaks if "+" not in p.component and not p.component.startswith("module ")]


def _row(label: str, peak: ComponentPeak) -> Sequence[str]:
    return [
        clean(label),
        clean(peak.component),
        *(
            UNKNOWN if b is None else format_bytes(b)
            for b in (peak.allocated_bytes, peak.reserved_bytes)
        ),
    ]


def _outside(use: MemoryUse, label: str) -> Iterator[Text]:
    peaks = {peak.component: peak.bytes for peak in component_peaks(use)}
    if PROCESS in peaks and ALLOCATOR in peaks and peaks[PROCESS] > peaks[ALLOCATOR]:
        outside = peaks[PROCESS] - peaks[ALLOCATOR]
        yield Text(
            f"{clean(label)}: {format_bytes(outside)} of the process ({PROCESS}) lie outside "
            f"torch's allocator ({ALLOCATOR})."
        )


def _holders(use: MemoryUse, label: str) -> Iterator[RenderableType]:
    if not use.holders:
        return
    when = ""
    if use.peak_at_us is not None and use.points:
        start = min(point.time_us for point in use.points)
        when = f", {ms(use.peak_at_us - start)} ms after the first record"
    total = sum(holder.size_bytes for holder in use.holders)
    yield Text(f"What was live at the allocator's peak ({clean(label)}{when}):")
    held = held_by(use.holders)
    rows = [
        [h.by, f"{h.count:,}", format_bytes(h.size_bytes), share(h.size_bytes, total)]
        for h in held[:_HOLDERS]
    ]
    yield table(["allocated by", "allocations", "size", "share"], rows, shortened=kernel)
    if len(held) > _HOLDERS:
        yield Text(f"and {count_of(len(held) - _HOLDERS, 'other')}", "dim")
