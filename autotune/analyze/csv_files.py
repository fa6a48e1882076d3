"""Tables -> CSV files in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from autotune.errors import UserError
from autotune.study.files import write_atomically


@dataclass(frozen=True)
class Written:
    """written: file names. left_out: the others, each with the reason."""

    folder: Path
    written: tuple[str, ...]
    left_out: Mapping[str, str]


def write_tables(
    folder: Path, tables: Mapping[str, pd.DataFrame], why_empty: Mapping[str, str]
) -> Written:
    """Writes `<name>.csv` for each table that has rows.

    Side effects: makes the folder; replaces files of these names, removes those of tables that
    are empty now, so that none is left of an earlier run; touches no other. Raises UserError.
    """
    written, left_out = [], {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            path = folder / f"{name}.csv"
            if table.empty:
                path.unlink(missing_ok=True)
                left_out[path.name] = why_empty[name]
            else:
                write_atomically(path, _csv(table))
                written.append(path.name)
    except OSError as error:
        raise UserError(
            f"cannot write to --out {folder}: {error.strerror or error}; give a folder, or the "
            "name of a new one"
        ) from None
    return Written(folder, tuple(written), left_out)


def _csv(table: pd.DataFrame) -> str:
    """Names come from files: what is no valid text (lone surrogates) becomes `?`."""
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", "replace").decode("utf-8")
