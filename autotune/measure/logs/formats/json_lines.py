"""Steps that a program prints as JSON, with the fields of a rank record (docs/design.md)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.measure.logs.entries import CutEntry, Entry, MemoryEntry, StepEntry
from autotune.measure.logs.labels import label_of, rank_of
from autotune.measure.logs.rates import Counted
from autotune.measure.records import StepRecord, parse_rank_records

_OBJECT = re.compile(r'\{\s*"')
_STEP = re.compile(r'"event"\s*:\s*"step"')
_MOST_OBJECTS = 16  # in one line; more are no lines of steps


@dataclass(frozen=True)
class JsonFormat:
    """One object a line, whatever stands before and after it."""

    name: str = "json"
    first_step_counts_again: bool = False

    @property
    def rates_alone(self) -> frozenset[Counted]:
        """None: each step tells its time."""
        return frozenset()

    def read(self, line: str) -> list[Entry]:
        """The steps in the line, and the memory that they tell of."""
        if not _STEP.search(line):
            return []
        entries = [entry for found in _steps(line) for entry in _entries(found)]
        return entries or [CutEntry()]


JSON = JsonFormat()


@dataclass(frozen=True)
class _Found:
    label: str | None
    fields: Mapping[str, Any]
    record: StepRecord


def _steps(line: str) -> Iterator[_Found]:
    decoder = json.JSONDecoder()
    end = 0
    for match in list(_OBJECT.finditer(line))[:_MOST_OBJECTS]:
        start = match.start()
        if start < end:
            continue
        try:
            fields, end = decoder.raw_decode(line, start)
            records = parse_rank_records(0, [line[start:end]]).steps
        except (ValueError, RecursionError, OverflowError):
            continue  # cut off, or braces and digits that are no step's
        for record in records:
            yield _Found(label_of(line[:start]), fields, record)


def _entries(found: _Found) -> Iterator[Entry]:
    if _whole(found.fields.get("step")) is None or not 0 < found.record.time_s < math.inf:
        yield CutEntry()
        return
    yield _step(found.record, found.label)
    peaks = {
        f"peak_{kind}_bytes": _whole(found.fields.get(f"peak_{kind}_bytes"))
        for kind in ("allocated", "reserved", "device")
    }
    held = {**peaks, "alloc_retries": found.record.alloc_retries}
    if any(value is not None for value in held.values()):
        rank = _whole(found.fields.get("rank"))
        yield MemoryEntry(found.record.step, rank_of(found.label) if rank is None else rank, **held)


def _step(record: StepRecord, label: str | None) -> StepEntry:
    return StepEntry(
        step=record.step,
        label=label,
        time_s=record.time_s,
        is_mean=False,
        loss=record.loss,
        grad_norm=record.grad_norm,
        samples=record.samples,
        tokens=record.tokens,
        skipped=record.skipped,
        profiled=record.profiled,
        phases_s=record.phases_s,
    )


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**63:
        return None
    return int(value)
