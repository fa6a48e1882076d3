"""Reads logs as they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autotune.measure.logs.entries import CutEntry, Entry, MemoryEntry, SkipEntry, StepEntry
from autotune.measure.logs.format import LogFormat
from autotune.measure.logs.lines import LineSplitter
from autotune.measure.logs.printed import LogReading, PrintedMemory
from autotune.measure.logs.rates import UNKNOWN_BATCH, Batch
from autotune.measure.logs.steps import SourcedEntry, printed_steps


class LogReader:
    """Reads the lines of one or more processes of a trial.

    batch: what is known of a global batch; where a program prints rates, its times follow
    from it.
    """

    def __init__(self, log_format: LogFormat, batch: Batch = UNKNOWN_BATCH) -> None:
        self._format = log_format
        self._batch = batch
        self._steps: list[SourcedEntry] = []
        self._memory: list[PrintedMemory] = []
        self._cut_lines = 0
        self._skips_next: set[int] = set()
        self._reading: LogReading | None = None

    def feed(self, lines: Iterable[str], source: int = 0) -> list[Entry]:
        """Takes whole lines (`LineSplitter`) and returns what they say.

        source: whose log they are from, such as the rank of the process. One log may hold the
        lines of several ranks.
        """
        entries = [entry for line in lines for entry in self._format.read(line)]
        for entry in entries:
            self._take(entry, source)
        if entries:
            self._reading = None
        return entries

    @property
    def reading(self) -> LogReading:
        """All that was read so far. Later lines may tell more of a step, and of the runs."""
        if self._reading is None:
            again = self._format.first_step_counts_again
            steps = printed_steps(self._steps, self._batch, again)
            self._reading = LogReading(steps, tuple(self._memory), self._cut_lines)
        return self._reading

    def _take(self, entry: Entry, source: int) -> None:
        match entry:
            case StepEntry():
                if source in self._skips_next:
                    self._skips_next.discard(source)
                    entry = replace(entry, skipped=True)
                self._steps.append(SourcedEntry(source, entry))
            case MemoryEntry():
                self._memory.append(_printed_memory(entry, source))
            case SkipEntry():
                self._skips_next.add(source)
            case CutEntry():
                self._cut_lines += 1


def _printed_memory(entry: MemoryEntry, source: int) -> PrintedMemory:
    return PrintedMemory(
        source,
        entry.rank,
        entry.step,
        entry.peak_allocated_bytes,
        entry.peak_reserved_bytes,
        entry.peak_device_bytes,
        entry.alloc_retries,
    )


def read_log(log_format: LogFormat, log: bytes, batch: Batch = UNKNOWN_BATCH) -> LogReading:
    """Reads the whole log of one process."""
    splitter = LineSplitter()
    reader = LogReader(log_format, batch)
    reader.feed([*splitter.feed(log), *splitter.finish()])
    return reader.reading
