"""Kernel Tuner's cache files -> cells.

A cache has `tune_params_keys` and, in `cache`, one entry a configuration, with its `time` in
milliseconds or the name of a failure; `time` is the mean of `times`. While Kernel Tuner runs, the
file lacks its last two braces; where it was killed, the last entry may be cut off.

Source: Kernel Tuner, `kernel_tuner/util.py` (process_cache, correct_open_cache) and its backends'
observers (`time`, `times`), and the tables of AutoTuningAssociation/benchmark_hub.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from autotune.errors import UserError, did_you_mean
from autotune.replay.raw import Cell, RawTable, typed_cell

_MS = 1e-3
_MOST = 1e300  # JSON's whole numbers have no bound, floats do


def read_kernel_tuner(name: str, text: str) -> RawTable:
    """The cells of a cache file: its parameters, and `batch_time_s`. Raises UserError."""
    data, notes = _load(name, text)
    keys, cache = _contents(name, data)
    entries = {label: _entry(name, label, entry, keys) for label, entry in cache.items()}
    times = [_time(entry) for entry in cache.values()]
    if times and not any(_says_time(entry) for entry in cache.values()):
        raise UserError(
            f"{name}: no entry has a time; it holds the objective {data.get('objective')!r}, and "
            "only tables of times can be replayed"
        )
    rows = [[*values, _seconds(time)] for values, time in zip(entries.values(), times, strict=True)]
    means = sum("time" not in entry and _says_time(entry) for entry in cache.values())
    notes += [f"entries without a time, read as the mean of their times: {means}"] if means else []
    notes += _failures(times)
    labels = [repr(label) for label in entries]
    return RawTable(name, (*keys, "batch_time_s"), rows, "entry", labels, tuple(notes))


def _load(name: str, text: str) -> tuple[Mapping[str, Any], list[str]]:
    """The file as data, closed where it was left open, and what was done to it."""
    text = text.strip()
    opened = text.removesuffix(",")
    without_last = text[: text.rfind("\n")].rstrip().removesuffix(",")
    unfinished = "the file is unfinished and was read as far as it goes"
    attempts = (
        (text, None),
        (opened + "}}", unfinished),
        (opened + "}", unfinished),
        (without_last + "}}", "the last entry is cut off and left out"),
    )
    problem = "it is no object"
    for attempt, note in attempts:
        try:
            data = json.loads(attempt, object_pairs_hook=partial(_each_once, name))
        except (ValueError, RecursionError) as error:
            problem = str(error) if attempt is text else problem
            continue
        if isinstance(data, dict):
            return data, [] if note is None else [note]
    raise UserError(f"{name} cannot be read as JSON: {problem}")


def _each_once(name: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise UserError(f"{name} names {key!r} twice, with different contents; keep one")
        found[key] = value
    return found


def _contents(
    name: str, data: Mapping[str, Any]
) -> tuple[list[str], Mapping[str, Mapping[str, Any]]]:
    keys, cache = data.get("tune_params_keys"), data.get("cache")
    if not isinstance(keys, list) or not isinstance(cache, Mapping):
        found = ", ".join(sorted(map(str, data))) or "nothing"
        raise UserError(
            f"{name} is no cache file of Kernel Tuner: it lacks tune_params_keys or cache; "
            f"it holds {found}"
        )
    if not keys or not all(isinstance(key, str) and key for key in keys):
        raise UserError(f"{name}: tune_params_keys={keys!r} must name the parameters")
    if len(set(keys)) < len(keys) or {"time", "batch_time_s"} & set(keys):
        raise UserError(
            f"{name}: tune_params_keys={keys!r} must name each parameter once, and not the time"
        )
    for label, entry in cache.items():
        if not isinstance(entry, Mapping):
            raise UserError(f"{name}, entry {label!r}: {entry!r} is no mapping")
    return keys, cache


def _entry(name: str, label: str, entry: Mapping[str, Any], keys: Sequence[str]) -> list[Cell]:
    cells = []
    for key in keys:
        if key not in entry:
            raise UserError(
                f"{name}, entry {label!r}: the parameter {key!r} is missing; "
                f"{did_you_mean(key, map(str, entry))}"
            )
        try:
            cells.append(typed_cell(entry[key]))
        except TypeError as error:
            raise UserError(f"{name}, entry {label!r}: {key}={entry[key]!r}: {error}") from None
    return cells


def _says_time(entry: Mapping[str, Any]) -> bool:
    times = entry.get("times")
    return "time" in entry or (
        isinstance(times, list) and bool(times) and all(map(_is_number, times))
    )


def _time(entry: Mapping[str, Any]) -> Any:
    """The `time` of an entry, or the mean of its `times` where it has no other."""
    if "time" in entry or not _says_time(entry):
        return entry.get("time")
    return statistics.fmean(max(min(time, _MOST), -_MOST) for time in entry["times"])


def _is_number(time: Any) -> bool:
    return isinstance(time, (int, float)) and not isinstance(time, bool)


def _seconds(time: Any) -> float | None:
    """Seconds; None for a failure, which is any text or object in the place of the time."""
    return max(min(time, _MOST), -_MOST) * _MS if _is_number(time) else None


def _failures(times: Sequence[Any]) -> list[str]:
    names = Counter(
        time if isinstance(time, str) else "no time" if time is None else "an error"
        for time in times
        if not _is_number(time)
    )
    if not names:
        return []
    counted = ", ".join(f"{count} x {name[:60]}" for name, count in names.most_common(5))
    return [f"read as points that do not run: {counted}"]
