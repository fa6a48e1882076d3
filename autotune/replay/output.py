"""What a replay leaves in its folder."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from autotune.errors import UserError
from autotune.replay.case import ReplayCase
from autotune.replay.figure import draw_curves
from autotune.replay.run import SeedRun
from autotune.replay.scores import Row, curve_rows, run_rows, summary_row
from autotune.study.files import write_atomically

FILES = ("summary.csv", "curves.csv", "runs.csv", "curves.png")


def prepare_folder(folder: Path) -> None:
    """Makes the folder, and sees that `FILES` can be written there.

    Raises UserError: better before hours of runs than behind them.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        in_the_way = [name for name in FILES if (folder / name).is_dir()]
    except OSError as error:
        raise UserError(
            f"replay.out={folder} cannot be written ({error.strerror or error}); give a folder "
            "that is yours, such as replay.out=replays/mine"
        ) from None
    if in_the_way:
        raise UserError(
            f"replay.out={folder}: {in_the_way[0]} is a folder there; move it away, or give "
            "another folder"
        )


def write_results(
    case: ReplayCase, runs: Mapping[str, Sequence[SeedRun]], folder: Path
) -> list[Row]:
    """Writes `FILES` into the folder, each replaced as a whole; the rows of the summary."""
    summary = [summary_row(case, sampler, its_runs) for sampler, its_runs in runs.items()]
    curves = curve_rows(case, runs)
    for name, rows in zip(FILES, (summary, curves, run_rows(case, runs)), strict=False):
        write_atomically(folder / name, _csv(rows))
    _write_picture(folder / FILES[-1], case, curves)
    return summary


def _csv(rows: Sequence[Row]) -> str:
    # As objects, or a column with an empty cell would turn 2 into 2.0.
    empty = [{key: _cell(value) for key, value in row.items()} for row in rows]
    text: str = pd.DataFrame(empty, dtype=object).to_csv(index=False, lineterminator="\n")
    return text


def _cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _write_picture(path: Path, case: ReplayCase, curves: Sequence[Row]) -> None:
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.png")
    try:
        draw_curves(temporary, case, curves)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
