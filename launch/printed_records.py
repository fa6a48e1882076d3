"""What a program prints, as records: for programs whose ranks write none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from autotune.measure.arrivals import CLOCK, contradiction
from autotune.measure.logs.entries import Entry, StepEntry
from autotune.measure.logs.format import LogFormat
from autotune.measure.logs.lines import LineSplitter
from autotune.measure.logs.printed import PrintedMemory, PrintedStep
from autotune.measure.logs.rates import UNKNOWN_BATCH, Batch
from autotune.measure.logs.reader import LogReader

_FEW_STEPS, _PAUSE_S = 100, 1.0


class PrintedRecords:
    """Writes a line of records (docs/design.md) for each step that the processes of a node print.

    A step is written when the next one shows that all was said of it, or at the end. Times that
    the moments at which the lines came contradict end the records with an error of kind `clock`.
    batch: by which rates become times. clock: seconds, of any beginning.
    """

    def __init__(
        self,
        path: Path,
        log_format: LogFormat,
        batch: Batch = UNKNOWN_BATCH,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = LogReader(log_format, batch)
        self._clock = clock
        self._arrivals: dict[int, float] = {}
        self._lines: dict[int, LineSplitter] = {}
        self._file = path.open("w", encoding="utf-8")
        self._looked_at = 0.0
        self._run = 0
        self._steps = 0
        self._memory = 0

    def feed(self, rank: int, output: bytes) -> None:
        """Takes output of a process."""
        self._take(rank, self._lines.setdefault(rank, LineSplitter()).feed(output))

    def close(self) -> None:
        """Takes what was left of the last lines. May be repeated."""
        if self._file.closed:
            return
        for rank, lines in self._lines.items():
            self._take(rank, lines.finish())
        self._write(len(self._reader.reading.last_run))
        self._check_times()
        self._file.close()

    def _take(self, rank: int, lines: list[str]) -> None:
        entries = self._reader.feed(lines, rank)
        if not entries:
            return
        # What was printed before is looked at again: of many steps not at every one.
        now = self._clock()
        if self._steps < _FEW_STEPS or now >= self._looked_at + _PAUSE_S:
            self._looked_at = now
            self._write(len(self._reader.reading.last_run) - 1)
        self._note_arrivals(entries, now)

    def _note_arrivals(self, entries: Iterable[Entry], now: float) -> None:
        for entry in entries:
            if isinstance(entry, StepEntry) and entry.is_timed:
                self._arrivals.setdefault(entry.step, now)

    def _check_times(self) -> None:
        steps = self._reader.reading.last_run
        printed_s = {step.step: step.time_s for step in steps if step.time_s is not None}
        wrong = contradiction(self._arrivals, printed_s)
        if wrong is not None:
            self._record({"event": "error", "kind": CLOCK, "message": wrong})
            self._file.flush()

    def _write(self, steps: int) -> None:
        """Writes what is new up to so many steps; a run that begins again is written anew."""
        reading = self._reader.reading
        run = max((step.run for step in reading.last_run), default=0)
        if run != self._run:
            if self._steps:
                self._record({"event": "start"})
            self._run, self._steps = run, 0
            self._arrivals.clear()
        for step in reading.last_run[self._steps : max(steps, 0)]:
            if step.time_s is not None:
                self._record(_step(step))
        self._steps = max(steps, 0)
        for memory in reading.memory[self._memory :]:
            self._record(_memory(memory))
        self._memory = len(reading.memory)
        self._file.flush()

    def _record(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")


def _step(step: PrintedStep) -> dict[str, Any]:
    record = {
        "event": "step",
        "step": step.step,
        "time_s": step.time_s,
        "loss": step.loss,
        "grad_norm": step.grad_norm,
        "samples": step.samples,
        "tokens": step.tokens,
        "phases_s": None if step.phases_s is None else dict(step.phases_s),
        "skipped": step.skipped,
        "profiled": step.profiled,
    }
    return {name: value for name, value in record.items() if value is not None}


def _memory(memory: PrintedMemory) -> dict[str, Any]:
    record = {
        "event": "memory",
        "rank": memory.source if memory.rank is None else memory.rank,
        "peak_allocated_bytes": memory.peak_allocated_bytes,
        "peak_reserved_bytes": memory.peak_reserved_bytes,
        "peak_device_bytes": memory.peak_device_bytes,
        "alloc_retries": memory.alloc_retries,
    }
    return {name: value for name, value in record.items() if value is not None}
