"""A recorded table: a space whose legal points are its rows, and what each came to."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotune.errors import UserError
from autotune.measure.outcome import Status
from autotune.replay.columns import Codes, layout_of, parameter_column
from autotune.replay.csv_file import read_csv
from autotune.replay.kernel_tuner import read_kernel_tuner
from autotune.replay.outcomes import Floats, Outcomes, read_outcomes
from autotune.replay.parquet_file import read_parquet
from autotune.replay.raw import Notes, RawTable
from autotune.space.definition import Parameter
from autotune.space.point import Point

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class ReplayTable:
    """Rows in the order of their codes, whatever their order in the file.

    codes: (rows, parameters), the index of each parameter's choice, -1 where it is inactive.
    status, time_s, peak_bytes, cost_s: by row; NaN where there is no time or peak; a usable
    row has a time. recorded_baseline: the row that was a study's baseline. notes: how the file
    was read.
    """

    name: str
    parameters: tuple[Parameter, ...]
    codes: Codes
    status: tuple[Status, ...]
    time_s: Floats
    peak_bytes: Floats
    cost_s: Floats
    recorded_baseline: int | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which rows run to their end within the limit."""
        return np.array([status.is_usable for status in self.status], np.bool_)

    @cached_property
    def refused(self) -> npt.NDArray[np.bool_]:
        """Which rows do not run for want of memory, or for a reason the table does not give."""
        return np.array([status.violates_memory for status in self.status], np.bool_)

    @cached_property
    def optimum_s(self) -> float:
        """The fastest usable time in seconds."""
        return float(self.time_s[self.usable].min())

    @cached_property
    def worst_s(self) -> float:
        """The slowest usable time in seconds: what a row that does not run counts as."""
        return float(self.time_s[self.usable].max())

    @cached_property
    def counted_s(self) -> Floats:
        """By row: its time where it is usable, else the worst usable time, in seconds."""
        return np.where(self.usable, self.time_s, self.worst_s)

    def point(self, row: int) -> Point:
        """The point of a row."""
        pairs = zip(self.parameters, self.codes[row], strict=True)
        return Point({p.name: p.choices[code] for p, code in pairs if code >= 0})

    def within(self, limit_bytes: int) -> ReplayTable:
        """The table as it would be under another limit on peak memory.

        Rows with a time and a peak are usable exactly where the peak is within the limit; the
        others stay as they are. Raises UserError where no row has both, or none stays usable.
        """
        known = ~np.isnan(self.time_s) & ~np.isnan(self.peak_bytes)
        if not known.any():
            raise UserError(
                f"replay.memory_limit: {self.name} has no peak_memory_bytes to hold against it; "
                "leave the limit out"
            )
        fits = self.peak_bytes <= limit_bytes
        status = tuple(
            (Status.OK if fits[row] else Status.OVER_LIMIT) if known[row] else before
            for row, before in enumerate(self.status)
        )
        if Status.OK not in status:
            least = int(self.peak_bytes[known].min())
            raise UserError(
                f"replay.memory_limit: no row of {self.name} is within {limit_bytes} bytes; "
                f"the least peak is {least} bytes"
            )
        return replace(self, status=status)

    @cached_property
    def separating_limit_bytes(self) -> int | None:
        """The limit that the rows imply: the largest peak of a usable one; None without peaks."""
        peaks = self.peak_bytes[self.usable]
        peaks = peaks[~np.isnan(peaks)]
        return int(peaks.max()) if len(peaks) else None


def read_table(path: Path) -> ReplayTable:
    """Reads a replay table: CSV, Parquet, or a cache file of Kernel Tuner, also gzipped.

    The kind is told by the content. Raises UserError for whatever can be wrong with it.
    """
    name = path.name.encode("utf-8", "replace").decode("utf-8")
    return table_of(_read(name, _bytes(path)))


def _bytes(path: Path) -> bytes:
    if path.is_dir():
        raise UserError(f"replay.table={path} is a folder; give one file of it")
    if path.exists() and not path.is_file():
        raise UserError(f"replay.table={path} is no file; give a CSV or Parquet file")
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except FileNotFoundError:
        raise UserError(f"replay.table={path} does not exist; give a CSV or Parquet file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"replay.table={path} cannot be read: {error}") from None


def _read(name: str, data: bytes) -> RawTable:
    if data.startswith(_PARQUET):
        return read_parquet(name, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UserError(
            f"{name} is neither UTF-8 text nor Parquet; give CSV, Parquet, or a cache file of "
            "Kernel Tuner"
        )
    return read_kernel_tuner(name, text) if text.lstrip()[:1] == "{" else read_csv(name, text)


def table_of(raw: RawTable) -> ReplayTable:
    """The table of a file's cells. Raises UserError."""
    layout, notes = layout_of(raw), Notes(raw)
    outcomes = read_outcomes(raw, notes)
    columns = [column for name in layout.parameters if (column := parameter_column(raw, name))]
    if Status.OK not in outcomes.status:
        raise UserError(
            f"{raw.name} has no usable row among its {len(raw.rows)}: none has a time in seconds "
            "in batch_time_s, with the status ok where there is one"
        )
    if not columns:
        raise UserError(f"{raw.name}: every parameter is empty in every row")
    codes = np.stack([codes for _, codes in columns], axis=1)
    rows = _each_once(raw, codes, outcomes, notes)
    return ReplayTable(
        name=raw.name,
        parameters=tuple(parameter for parameter, _ in columns),
        codes=codes[rows],
        status=tuple(outcomes.status[row] for row in rows),
        time_s=outcomes.time_s[rows],
        peak_bytes=outcomes.peak_bytes[rows],
        cost_s=outcomes.cost_s[rows],
        recorded_baseline=_baseline(raw, rows) if layout.is_study else None,
        notes=(*raw.notes, *layout.notes, *_dropped(layout.parameters, columns), *notes.lines),
    )


def _each_once(
    raw: RawTable, codes: Codes, outcomes: Outcomes, notes: Notes
) -> npt.NDArray[np.intp]:
    """The rows that are kept, in the order of their codes.

    Raises UserError for two rows of one point whose results differ.
    """
    order = np.lexsort(codes.T[::-1])
    kept: list[int] = []
    for row in order[outcomes.kept[order]]:
        if not kept or not np.array_equal(codes[row], codes[kept[-1]]):
            kept.append(int(row))
            continue
        before = kept[-1]
        if _result(outcomes, row) != _result(outcomes, before):
            raise raw.error(
                int(row),
                f"the same point as in {raw.place(before)}, with another result "
                f"({_differing(outcomes, row, before)}); keep one of them",
            )
        notes.add("rows that repeat an earlier one, merged", int(row))
    return np.array(kept, np.intp)


def _result(outcomes: Outcomes, row: int) -> tuple[Status, float, float]:
    time, peak = outcomes.time_s[row], outcomes.peak_bytes[row]
    return outcomes.status[row], float(np.nan_to_num(time)), float(np.nan_to_num(peak))


def _differing(outcomes: Outcomes, row: int, before: int) -> str:
    """Both results, with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        here, there = _told(outcomes, row, digits), _told(outcomes, before, digits)
        if here != there:
            break
    return f"{here}, there {there}"


def _told(outcomes: Outcomes, row: int, digits: int) -> str:
    time, peak = float(outcomes.time_s[row]), float(outcomes.peak_bytes[row])
    words = [outcomes.status[row].value]
    words += [] if np.isnan(time) else [f"{time:.{digits}g} s"]
    words += (
        [] if np.isnan(peak) else [f"{peak:.0f} bytes" if peak.is_integer() else f"{peak} bytes"]
    )
    return ", ".join(words)


def _dropped(names: tuple[str, ...], columns: list[tuple[Parameter, Codes]]) -> tuple[str, ...]:
    kept = {parameter.name for parameter, _ in columns}
    empty = ", ".join(name for name in names if name not in kept)
    return (f"parameters without a value in any row, left out: {empty}",) if empty else ()


def _baseline(raw: RawTable, rows: npt.NDArray[np.intp]) -> int | None:
    flags = raw.column("baseline")
    return next((at for at, row in enumerate(rows) if flags[row] is True), None)
