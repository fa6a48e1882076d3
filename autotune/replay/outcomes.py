"""The result columns of a recorded table -> what a run of each row comes to.

What the table leaves open is read in one stated way, and every such reading is noted:

- no time and no status: the point does not run, told as out of memory;
- a time of 0 or below, NaN, infinite, or of 1e7 s and more (Kernel Tuner and others mark
  failures so): no time;
- `ok` without a time: failed; `stopped` with a time: ok, since a replayed run is not stopped;
- `oom`, `failed` or `hung` with a time: the status counts, the time does not;
- `skipped` (a gate refused it): out of memory; `infrastructure`: the row is left out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.errors import did_you_mean
from autotune.measure.outcome import Status
from autotune.replay.raw import Cell, Notes, RawTable, text_cell

Floats = npt.NDArray[np.float64]
_LONGEST_S = 1e7
# A picosecond: no program runs for less, and models of times have no use for it.
_SHORTEST_S = 1e-12
_LARGEST = {"peak_memory_bytes": 2.0**60, "cost_s": 1e9}
_BEYOND = 1e308  # whole numbers have no bound, floats do
_WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)")
_NEEDS_TIME = (Status.OK, Status.STOPPED)
_HAS_NO_TIME = (Status.OOM, Status.FAILED, Status.HUNG)


@dataclass(frozen=True)
class Outcomes:
    """By row. time_s, peak_bytes: NaN where there is none. cost_s: 1 where it is not given.

    kept: False for rows that tell nothing about their point.
    """

    status: tuple[Status, ...]
    time_s: Floats
    peak_bytes: Floats
    cost_s: Floats
    kept: npt.NDArray[np.bool_]


def read_outcomes(raw: RawTable, notes: Notes) -> Outcomes:
    """What the result columns say. Raises UserError for a cell that cannot be read."""
    times, statuses = raw.column("batch_time_s"), raw.column("status")
    read = [
        _outcome(raw, notes, number, status, time)
        for number, (status, time) in enumerate(zip(statuses, times, strict=True))
    ]
    return Outcomes(
        tuple(status for status, _ in read),
        np.array([time for _, time in read], np.float64),
        np.array(_amounts(raw, "peak_memory_bytes"), np.float64),
        np.nan_to_num(np.array(_amounts(raw, "cost_s"), np.float64), nan=1.0),
        np.array([status is not Status.INFRASTRUCTURE for status, _ in read], np.bool_),
    )


def _outcome(
    raw: RawTable, notes: Notes, number: int, status: Cell, time: Cell
) -> tuple[Status, float]:
    given, time_s = _status(raw, number, status), _time(raw, notes, number, time)
    timed = not math.isnan(time_s)
    if given is None:
        return (Status.OK if timed else Status.OOM), time_s
    if given is Status.INFRASTRUCTURE:
        notes.add("rows of runs lost to the infrastructure, left out", number)
    elif given is Status.SKIPPED:
        return Status.OOM, math.nan
    elif given in _NEEDS_TIME and not timed:
        notes.add(f"rows that say {given} but have no time, read as failed", number)
        return Status.FAILED, time_s
    elif given is Status.STOPPED:
        notes.add("rows of runs that were stopped, read as ok", number)
        return Status.OK, time_s
    elif given in _HAS_NO_TIME and timed:
        notes.add(f"rows that say {given} but have a time, which does not count", number)
        return given, math.nan
    return given, time_s


def _status(raw: RawTable, number: int, cell: Cell) -> Status | None:
    if cell is None:
        return None
    text = str(cell).lower()
    try:
        return Status(text)
    except ValueError:
        allowed = did_you_mean(text, [status.value for status in Status])
        raise raw.error(number, f"status={str(cell)!r} is unknown; {allowed}") from None


def _time(raw: RawTable, notes: Notes, number: int, cell: Cell) -> float:
    """Seconds, NaN where the row has no time."""
    if cell is None:
        return math.nan
    time_s = _number(raw, number, "batch_time_s", cell)
    if 0 < time_s < _SHORTEST_S:
        raise raw.error(
            number, f"batch_time_s={cell} is shorter than a picosecond; give the time in seconds"
        )
    if 0 < time_s < _LONGEST_S:
        return time_s
    if time_s <= 0:
        notes.add("rows with a time of 0 or below, read as failures", number)
    elif math.isnan(time_s):
        notes.add("rows with NaN for a time, read as failures", number)
    else:
        notes.add("rows with a time of 1e7 s or more, read as failures", number)
    return math.nan


def _amounts(raw: RawTable, column: str) -> list[float]:
    """Numbers that are not negative, NaN where there is none; a peak of 0 is no peak."""
    found = []
    for number, cell in enumerate(raw.column(column)):
        amount = math.nan if cell is None else _number(raw, number, column, cell)
        if amount < 0 or amount > _LARGEST[column]:
            raise raw.error(
                number,
                f"{column}={str(cell)[:40]} must be a finite number, at least 0 and at most "
                f"{_LARGEST[column]:.3g}",
            )
        found.append(math.nan if amount == 0 and column == "peak_memory_bytes" else amount)
    return found


def _number(raw: RawTable, number: int, column: str, cell: Cell) -> float:
    # Text here is what no column of numbers would hold, or from a file that knows types.
    read = text_cell(cell) if isinstance(cell, str) else cell
    if isinstance(read, str) and _NO_NUMBER.fullmatch(read.lower()):
        return float(read)
    if isinstance(read, (int, float)) and not isinstance(read, bool):
        return float(read) if abs(read) < _BEYOND else math.copysign(math.inf, read)
    shown = str(cell)[:40]
    way_out = "leave it empty where there is none"
    if isinstance(read, str) and _WITH_COMMA.fullmatch(read):
        way_out = f"write decimals with a point: {read.replace(',', '.')}"
    raise raw.error(number, f"{column}={shown!r} is no number; {way_out}")
