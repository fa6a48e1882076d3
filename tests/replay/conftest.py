"""Tables that tests make up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.replay.table import ReplayTable, read_table

TablePath = Callable[[str], Path]


@pytest.fixture
def csv_path(tmp_path: Path) -> TablePath:
    """Writes CSV text to a file."""

    def write(text: str) -> Path:
        path = tmp_path / "T.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def read(csv_path: TablePath) -> Callable[[str], ReplayTable]:
    """The table of CSV text."""
    return lambda text: read_table(csv_path(text))


def time_of(x: int, y: int, kind: str) -> float:
    """Seconds; the optimum is 1.0 at x=5, y=2, b."""
    return 1.0 + 0.1 * ((x - 5) ** 2 + (y - 2) ** 2) + (0.0 if kind == "b" else 0.4)


def peak_of(x: int, y: int) -> int:
    """Bytes; points with more than 110 do not run."""
    return 10 * (x + y)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> ReplayTable:
    """128 points of x, y = 0..7 and two kinds; 20 of them, with x + y > 11, do not run.

    The lines are shuffled, but always alike.
    """
    lines = []
    for number in range(128):
        x, y, kind = (number * 37 % 128) // 16, (number * 37 % 16) // 2, "ab"[number * 37 % 2]
        runs = peak_of(x, y) <= 110
        time = f"{time_of(x, y, kind):.6f}" if runs else ""
        lines.append(f"{x},{y},{kind},{time},{peak_of(x, y)},{'ok' if runs else 'oom'}")
    path = tmp_path_factory.mktemp("planted") / "planted.csv"
    header = "x,y,kind,batch_time_s,peak_memory_bytes,status"
    path.write_text("\n".join([header, *lines]) + "\n")
    return read_table(path)
