"""How the tests of this folder read lines."""

from __future__ import annotations

from autotune.measure.logs.formats import format_of
from autotune.measure.logs.printed import LogReading
from autotune.measure.logs.rates import UNKNOWN_BATCH, Batch
from autotune.measure.logs.reader import read_log


def read(format_: object, *lines: str, batch: Batch = UNKNOWN_BATCH) -> LogReading:
    """What a log of these lines, each ended, is read as."""
    log = "".join(f"{line}\n" for line in lines).encode()
    return read_log(format_of(format_, "printed"), log, batch)


def times(reading: LogReading) -> list[tuple[int, float | None]]:
    return [(step.step, step.time_s) for step in reading.steps]
