"""Columns of a recorded table -> parameters of a space."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.errors import UserError
from autotune.measure.records import PHASES
from autotune.replay.raw import Cell, RawTable
from autotune.space.definition import Parameter

Codes = npt.NDArray[np.int16]
_MOST_NAMED = 30
_MOST_CHOICES = int(np.iinfo(np.int16).max)

RESULTS = ("batch_time_s", "peak_memory_bytes", "status", "cost_s")
"""Columns that say what a run came to; of them only the time must be there."""

# What `report/trials.csv` of a study has besides its parameters and RESULTS. Whoever takes some
# of its columns out must not find the rest of them among the parameters: they tell the time.
_OF_A_STUDY = (
    *("trial", "batch_time_low_s", "batch_time_high_s", "attempt", "baseline"),
    *("taken_from", "reason"),
    *(f"{phase}_s" for phase in PHASES),
)
# Of a study too, but only beside others: it is a good name for a parameter.
_ALSO_OF_A_STUDY = ("steps",)
# What pandas calls the numbers of the rows where they were written as a column.
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+")


@dataclass(frozen=True)
class Layout:
    """parameters: the columns that vary. is_study: the table is the report of a study, or what
    was left of one. notes: what is no parameter though it is no result either.
    """  # noqa: D205 (the fields are the summary)

    parameters: tuple[str, ...]
    is_study: bool
    notes: tuple[str, ...] = ()


def layout_of(raw: RawTable) -> Layout:
    """Which columns are parameters: all that are no results. Raises UserError."""
    if "batch_time_s" not in raw.columns:
        found = ", ".join(map(_shown, raw.columns[:_MOST_NAMED]))
        found += ", ..." if len(raw.columns) > _MOST_NAMED else ""
        raise UserError(
            f"{raw.name} has no column batch_time_s; its columns are: {found}. A replay table is "
            "CSV or Parquet with a column a parameter and batch_time_s in seconds, or a cache "
            "file of Kernel Tuner"
        )
    notes = []
    is_study = any(name in raw.columns for name in _OF_A_STUDY)
    of_study = [c for c in raw.columns if is_study and c in (*_OF_A_STUDY, *_ALSO_OF_A_STUDY)]
    if is_study:
        notes.append(f"read as the trials of a study: no parameters are {', '.join(of_study)}")
    counting = [name for name in raw.columns if _INDEX.fullmatch(name)]
    if counting:
        notes.append(f"columns that number the rows, left out: {', '.join(counting)}")
    no_parameters = {*RESULTS, *of_study, *counting}
    parameters = tuple(name for name in raw.columns if name not in no_parameters)
    if not parameters:
        raise UserError(f"{raw.name} has no column of a parameter besides its results")
    return Layout(parameters, is_study, tuple(notes))


def parameter_column(raw: RawTable, name: str) -> tuple[Parameter, Codes] | None:
    """A column as a parameter, with the index of each row's choice, -1 where it is inactive.

    Numbers become ordered choices, words categories in the order in which they first occur.
    None where the parameter is inactive in every row. Raises UserError.
    """
    cells = raw.column(name)
    _check_one_kind(raw, name, cells)
    values = dict.fromkeys(cell for cell in cells if cell is not None)
    if not values:
        return None
    ordered = _is_number(next(iter(values)))
    choices = sorted(values) if ordered else list(values)
    if len(choices) > _MOST_CHOICES:
        raise UserError(
            f"{raw.name}: {name} has {len(choices)} different values, more than {_MOST_CHOICES}; "
            "leave the column out if it is no parameter"
        )
    numbers = {choice: number for number, choice in enumerate(choices)}
    codes = np.array([-1 if cell is None else numbers[cell] for cell in cells], np.int16)
    return Parameter(name, tuple(choices), ordered), codes


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _check_one_kind(raw: RawTable, name: str, cells: Sequence[Cell]) -> None:
    """Raises UserError where numbers and words mix, and for numbers without an end."""
    first: int | None = None
    for number, cell in enumerate(cells):
        if cell is None:
            continue
        if isinstance(cell, float) and not np.isfinite(cell):
            raise raw.error(number, f"{name}={cell!r} is no finite number")
        if first is None:
            first = number
        elif _is_number(cell) is not _is_number(cells[first]):
            raise raw.error(
                number,
                f"{name}={_shown(cell)} is {_kind(cell)}, but {_kind(cells[first])} in "
                f"{raw.place(first)} ({name}={_shown(cells[first])}); "
                "a column holds numbers, or words, not both",
            )


def _kind(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "true or false"
    return "a number" if _is_number(cell) else "text"


def _shown(cell: Cell) -> str:
    text = str(cell).lower() if isinstance(cell, bool) else str(cell)
    return text if len(text) <= 40 else f"{text[:39]}…"
