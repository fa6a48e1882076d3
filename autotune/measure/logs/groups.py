"""The named groups of patterns: what each holds, and which text is a value of it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping

from autotune.measure.logs.entries import MemoryEntry, StepEntry
from autotune.measure.logs.labels import rank_of
from autotune.measure.logs.quantities import count, number, seconds, size_bytes
from autotune.measure.logs.rates import Counted, Rate

_TIMES: Mapping[str, int | None] = {
    "time": None,
    "time_s": 1,
    "time_ms": 1000,
    "time_us": 1_000_000,
}
_RATES: Mapping[str, tuple[Counted, bool]] = {
    "samples_per_s": (Counted.SAMPLES, False),
    "samples_per_s_per_device": (Counted.SAMPLES, True),
    "tokens_per_s": (Counted.TOKENS, False),
    "tokens_per_s_per_device": (Counted.TOKENS, True),
    "steps_per_s": (Counted.STEPS, False),
}
_UNITS: Mapping[str, int | None] = {"": None, "_bytes": 1, "_mib": 1024**2, "_gib": 1024**3}
_PEAKS: Mapping[str, tuple[str, int | None]] = {
    f"{name}{suffix}": (f"peak_{kind}_bytes", unit)
    for name, kind in (
        ("memory", "reserved"),
        ("peak_allocated", "allocated"),
        ("peak_reserved", "reserved"),
        ("peak_device", "device"),
    )
    for suffix, unit in _UNITS.items()
}
_OTHERS = ("step", "loss", "grad_norm", "samples", "tokens", "skipped", "skipped_so_far", "rank")

TIMING_GROUPS = (*_TIMES, *_RATES)
"""Of these a line of a step needs one."""

MEMORY_GROUPS = (*_PEAKS, "alloc_retries")

GROUPS = (*_OTHERS, *TIMING_GROUPS, *MEMORY_GROUPS)
"""All names that a group may have. `time`, `memory`, `peak_...` without a unit in the name
are texts with a unit in them, such as `561.94ms` or `2.52GB`; `memory` is the peak of what is
reserved. `skipped` counts the skipped updates since the line before, `alloc_retries` how often
the allocator had had to try again."""


def rates_alone(groups: Collection[str]) -> set[Counted]:
    """What the rates among the groups count, none where a time is among them too."""
    if any(name in _TIMES for name in groups):
        return set()
    counted = {_RATES[name][0] for name in groups if name in _RATES}
    return counted - {Counted.STEPS}


# What may follow a number at once so that it still means what its group says.
_RATE_UNIT = re.compile(r"(?![kKMGBT])[a-z]+/")
_SUFFIXES: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(_RATES, _RATE_UNIT),
    "time_s": re.compile(r"s(ecs?|econds?)?(?![a-zA-Z])"),
    "time_ms": re.compile(r"(ms(ecs?)?|milliseconds?)(?![a-zA-Z])"),
    "time_us": re.compile(r"[u\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]s(?![a-zA-Z])"),
    **{name: re.compile(r"(B|bytes?)(?![a-zA-Z])") for name in _PEAKS if name.endswith("_bytes")},
    **{name: re.compile(r"Mi?B?(?![a-zA-Z])") for name in _PEAKS if name.endswith("_mib")},
    **{name: re.compile(r"Gi?B?(?![a-zA-Z])") for name in _PEAKS if name.endswith("_gib")},
}
_NO_SUFFIX = re.compile(r"(?!)")
_DIGITS_BEFORE = re.compile(r"\d\.?$")
_THOUSANDS_BEFORE = re.compile(r"\d,$")
_THOUSANDS = re.compile(r"\d{3}(?!\d)")
_DIGITS_AFTER = re.compile(r"\.?\d")
_THOUSANDS_AFTER = re.compile(r",\d{3}(?!\d)")
# A separator at the end of the line, or a mark that there was more.
_LOST_AFTER = re.compile("[.,]?(?:[\N{HORIZONTAL ELLIPSIS}\N{REPLACEMENT CHARACTER}]|$)")


def is_whole(name: str, match: re.Match[str]) -> bool:
    """Whether the group `name` holds all of a value, not a part of a longer number.

    Commas are taken for those of thousands only where the match ends: within it, the pattern
    itself says what they are.
    """
    line, (start, end) = match.string, match.span(name)
    before = line[max(start - 2, 0) : start]
    if line[start : start + 1].isdigit() and (
        _DIGITS_BEFORE.search(before)
        or (
            start == match.start()
            and _THOUSANDS_BEFORE.search(before)
            and _THOUSANDS.match(line, start)
        )
    ):
        return False
    if end == len(line):
        return True
    if _DIGITS_AFTER.match(line, end) or _LOST_AFTER.match(line, end):
        return False
    if end == match.end() and _THOUSANDS_AFTER.match(line, end):
        return False
    return not line[end].isalpha() or bool(_SUFFIXES.get(name, _NO_SUFFIX).match(line, end))


def step_of(
    values: Mapping[str, str], kind: int, label: str | None, is_mean: bool
) -> StepEntry | None:
    """The step that the groups' texts tell of; None where they hold no step or nothing of it."""
    step = count(values.get("step", ""))
    entry = None
    if step is not None:
        entry = StepEntry(
            step=step,
            kind=kind,
            label=label,
            time_s=_time(values),
            rate=_rate(values),
            is_mean=is_mean,
            loss=number(values.get("loss", "")),
            grad_norm=number(values.get("grad_norm", "")),
            samples=count(values.get("samples", "")),
            tokens=count(values.get("tokens", "")),
            skipped=bool(count(values.get("skipped", ""))),
            skipped_so_far=count(values.get("skipped_so_far", "")),
        )
    if entry is None or not (entry.is_timed or entry.skipped_so_far is not None):
        return None
    return entry


def memory_of(values: Mapping[str, str], label: str | None) -> MemoryEntry | None:
    """The memory that the groups' texts tell of, None where they tell of none."""
    peaks: dict[str, int] = {}
    for name, (field, unit) in _PEAKS.items():
        size = size_bytes(values[name], unit) if name in values else None
        if size is not None:
            peaks[field] = size
    retries = count(values.get("alloc_retries", ""))
    if not peaks and retries is None:
        return None
    rank = count(values.get("rank", ""))
    return MemoryEntry(
        step=count(values.get("step", "")),
        rank=rank_of(label) if rank is None else rank,
        alloc_retries=retries,
        **peaks,
    )


def _time(values: Mapping[str, str]) -> float | None:
    for name, parts in _TIMES.items():
        time_s = seconds(values[name], parts) if name in values else None
        if time_s is not None and 0 < time_s < math.inf:
            return time_s
    return None


def _rate(values: Mapping[str, str]) -> Rate | None:
    for name, (of, per_device) in _RATES.items():
        per_s = number(values[name]) if name in values else None
        if per_s is not None and 0 < per_s < math.inf:
            return Rate(per_s, of, per_device)
    return None
