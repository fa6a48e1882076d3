"""The tables in `benchmarks/tables`: whole spaces of the models that the project comes with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.cli.wiring import compose_problem
from autotune.replay.case import RecordedSpace
from autotune.replay.table import read_table

TABLES = Path(__file__).parents[2] / "benchmarks" / "tables"


@pytest.mark.parametrize("model", ["tiny_vlm", "tiny_dit"])
def test_a_table_holds_every_legal_point_with_its_time_and_peak(model: str) -> None:
    problem = compose_problem((f"model={model}",), None)
    table = read_table(TABLES / f"{model}.csv")
    assert len(table) >= 200
    assert {table.point(row).key for row in range(len(table))} == {
        point.key for point in problem.space.points
    }
    assert np.isfinite(table.peak_bytes).all()
    over = table.peak_bytes > problem.memory_limit_bytes
    assert (table.usable == ~over).all()
    assert 0.02 < over.mean() < 0.6
    assert len(RecordedSpace(table).legal.codes) == len(table)
