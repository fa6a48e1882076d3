"""`replay.baseline` -> the row that is planted as trial 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autotune.errors import UserError, did_you_mean
from autotune.replay.raw import typed_cell
from autotune.replay.table import ReplayTable
from autotune.space.definition import Parameter
from autotune.space.point import plain

NAMED = ("median", "worst", "recorded")
_ALLOWED = f"give null, {', '.join(NAMED)}, or values such as {{sp_degree: 1}}"


def baseline_row(table: ReplayTable, setting: Any) -> int | None:
    """The row that `setting` names, None for none. Raises UserError.

    `median` and `worst`: the usable row of that time, of equal ones the first in the order of
    the table; `recorded`: the baseline of the study that the table reports; a mapping: the one
    row with these values, null for an inactive parameter.
    """
    if setting is None:
        return None
    if isinstance(setting, Mapping):
        return _matching(table, setting)
    if setting == "recorded":
        if table.recorded_baseline is None:
            raise UserError(
                f"replay.baseline=recorded: {table.name} is no report/trials.csv of a study with "
                f"its baseline; {_ALLOWED}"
            )
        return table.recorded_baseline
    if setting not in NAMED:
        raise UserError(f"replay.baseline={setting!r} is unknown; {_ALLOWED}")
    usable = np.flatnonzero(table.usable)
    by_time = usable[np.argsort(table.time_s[usable], kind="stable")]
    return int(by_time[-1] if setting == "worst" else by_time[(len(by_time) - 1) // 2])


def _matching(table: ReplayTable, values: Mapping[str, Any]) -> int:
    parameters = {parameter.name: parameter for parameter in table.parameters}
    for name in values:
        if name not in parameters:
            raise UserError(
                f"replay.baseline names the unknown parameter {name!r}; "
                f"{did_you_mean(str(name), parameters)}"
            )
    fits = np.ones(len(table), np.bool_)
    for column, parameter in enumerate(table.parameters):
        if parameter.name in values:
            fits &= table.codes[:, column] == _code(parameter, values[parameter.name])
    rows = np.flatnonzero(fits)
    if len(rows) == 1:
        return int(rows[0])
    if len(rows) == 0:
        raise UserError(
            f"replay.baseline: no row of {table.name} has these values; a combination that is "
            "not in the table is illegal"
        )
    more = ", ".join(_that_differ(table, rows))
    raise UserError(f"replay.baseline fits {len(rows)} rows; give also a value of {more}")


def _code(parameter: Parameter, value: Any) -> int:
    if value is None:
        return -1
    try:
        return parameter.index_of(typed_cell(value))
    except (ValueError, TypeError):
        known = [plain(choice) for choice in parameter.choices]
        shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise UserError(
            f"replay.baseline: {parameter.name}={value!r} is in no row; allowed: {shown}"
        ) from None


def _that_differ(table: ReplayTable, rows: npt.NDArray[np.intp]) -> list[str]:
    return [
        parameter.name
        for column, parameter in enumerate(table.parameters)
        if len(np.unique(table.codes[rows, column])) > 1
    ]
