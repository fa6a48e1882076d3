"""Rank records: what each rank of a trial wrote down (docs/design.md, contract).

One JSON object a line. A line that is cut off or is no JSON object is what a killed rank
leaves behind: it is passed over.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.json_object import json_object

_LARGEST = sys.float_info.max

PHASES = (
    "data_loading",
    "forward_backward",
    "optimizer",
    "post_processing",
    "communication",
    "scheduling",
)


@dataclass(frozen=True)
class StepRecord:
    """One global batch as one rank saw it.

    time_s: seconds from asking for the data to the end of the step. samples, tokens: of the
    whole global batch. phases_s: seconds by phase, adding up to time_s. peak_bytes: the most
    that the rank's allocator had reserved (allocated, where it does not reserve) so far;
    peak_device_bytes: the most that its device had in use, whoever held it. profiled: a
    profiler or a memory trace ran, so the time does not count. skipped: the optimizer made
    no update, as loss scaling does after an overflow. alloc_retries: how often so far the
    allocator found no memory, gave its pool back and tried again (`num_alloc_retries` of
    `torch.cuda.memory_stats`).
    """

    step: int
    time_s: float
    samples: int | None = None
    tokens: int | None = None
    loss: float | None = None
    grad_norm: float | None = None
    phases_s: Mapping[str, float] | None = None
    peak_bytes: int | None = None
    peak_device_bytes: int | None = None
    profiled: bool = False
    skipped: bool = False
    alloc_retries: int | None = None

    @property
    def shortfall(self) -> str | None:
        """Why the step did not do its full work, None where it did."""
        if self.skipped:
            return "its update was skipped"
        if self.loss is not None and not math.isfinite(self.loss):
            return "its loss is not finite"
        if self.grad_norm is not None and not math.isfinite(self.grad_norm):
            return "its gradient is not finite"
        return None


@dataclass(frozen=True)
class RankError:
    """The last words of a rank. kind: `oom`, `config`, `exception`, ..."""

    rank: int
    kind: str
    message: str
    peak_bytes: int | None = None


@dataclass(frozen=True)
class MemoryRecord:
    """What a rank held, told apart from its steps. Bytes; None where it is not told."""

    rank: int
    peak_bytes: int | None
    peak_device_bytes: int | None
    alloc_retries: int | None = None


@dataclass(frozen=True)
class RankRecords:
    """Everything that one rank recorded. memory: of any rank, where one speaks for others."""

    rank: int
    started: bool = False
    ended: bool = False
    steps: tuple[StepRecord, ...] = ()
    errors: tuple[RankError, ...] = ()
    memory: tuple[MemoryRecord, ...] = ()

    @property
    def peak_bytes(self) -> int | None:
        """The largest number of bytes that the rank's allocator held, or None."""
        return _largest(
            *(step.peak_bytes for step in self.steps),
            *(error.peak_bytes for error in self.errors),
            *(memory.peak_bytes for memory in self.memory),
        )

    @property
    def peak_device_bytes(self) -> int | None:
        """The largest number of bytes that were in use on the rank's device, or None."""
        return _largest(
            *(step.peak_device_bytes for step in self.steps),
            *(memory.peak_device_bytes for memory in self.memory),
        )

    @property
    def alloc_retries(self) -> int:
        """How often the rank's allocator had to try again, as far as anybody tells."""
        counts = [step.alloc_retries for step in self.steps]
        counts += [memory.alloc_retries for memory in self.memory]
        return _largest(*counts) or 0


def _largest(*peaks: int | None) -> int | None:
    return max((peak for peak in peaks if peak is not None), default=None)


def parse_rank_records(rank: int, lines: Iterable[str]) -> RankRecords:
    """Reads one `rank<k>.jsonl`."""
    reader = RankReader(rank)
    for line in lines:
        reader.feed(line)
    return reader.records


class RankReader:
    """Reads the lines of one rank as they come."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._started = False
        self._ended = False
        self._steps: list[StepRecord] = []
        self._errors: list[RankError] = []
        self._memory: list[MemoryRecord] = []

    def feed(self, line: str) -> None:
        """Takes one whole line."""
        entry = _entry(line)
        event = entry.get("event")
        if event == "start":
            # Who begins again, as under torchrun with restarts, counts its steps anew; what ended
            # the first run stays.
            self._started, self._ended = True, False
            self._steps.clear()
        elif event == "end":
            self._ended = True
        elif event == "step":
            self._steps.append(_step(entry, len(self._steps)))
        elif event == "memory":
            rank = _integer(entry.get("rank"))
            self._memory.append(
                MemoryRecord(
                    self._rank if rank is None else rank,
                    _peak(entry),
                    _bytes(entry.get("peak_device_bytes")),
                    _integer(entry.get("alloc_retries")),
                )
            )
        elif event == "error":
            self._errors.append(
                RankError(
                    self._rank,
                    str(entry.get("kind") or "exception"),
                    str(entry.get("message") or "no message"),
                    _peak(entry),
                )
            )

    @property
    def records(self) -> RankRecords:
        """What has been read so far."""
        return RankRecords(
            self._rank,
            self._started,
            self._ended,
            tuple(self._steps),
            tuple(self._errors),
            tuple(self._memory),
        )

    @property
    def steps_read(self) -> int:
        """How many steps the rank has recorded so far."""
        return len(self._steps)


def _entry(line: str) -> dict[str, Any]:
    try:
        return json_object(line)
    except ValueError:
        return {}


def _step(entry: Mapping[str, Any], position: int) -> StepRecord:
    step = _integer(entry.get("step"))
    return StepRecord(
        step=position if step is None else step,
        time_s=_number(entry.get("time_s")),
        samples=_integer(entry.get("samples")),
        tokens=_integer(entry.get("tokens")),
        # An absent loss is no loss, one that is null or not finite is a broken step.
        loss=_number(entry["loss"]) if "loss" in entry else None,
        grad_norm=_number(entry["grad_norm"]) if "grad_norm" in entry else None,
        phases_s=_phases(entry.get("phases_s")),
        peak_bytes=_peak(entry),
        peak_device_bytes=_bytes(entry.get("peak_device_bytes")),
        profiled=bool(entry.get("profiled", False)),
        skipped=bool(entry.get("skipped", False)),
        alloc_retries=_integer(entry.get("alloc_retries")),
    )


def _phases(value: object) -> dict[str, float] | None:
    """Seconds by phase; None where they are not all numbers of at least 0."""
    if not isinstance(value, Mapping):
        return None
    phases = {name: _number(value.get(name, 0.0)) for name in PHASES}
    return (
        phases if all(seconds >= 0 and seconds < math.inf for seconds in phases.values()) else None
    )


def _peak(entry: Mapping[str, Any]) -> int | None:
    peaks = [_bytes(entry.get(f"peak_{kind}_bytes")) for kind in ("reserved", "allocated")]
    return max((peak for peak in peaks if peak is not None), default=None)


def _bytes(value: object) -> int | None:
    """A peak; nothing that trains holds no memory, so that 0 means that nobody has looked."""
    number = _integer(value)
    return number if number is not None and number > 0 else None


def _number(value: object) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        return math.nan
    # JSON's whole numbers have no bound, floats do.
    return float(value) if abs(value) <= _LARGEST else math.nan


def _integer(value: object) -> int | None:
    number = _number(value)
    return int(number) if math.isfinite(number) else None
