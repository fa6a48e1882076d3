"""The CSV files: fixed names, units in the columns, and nothing of an earlier run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from autotune.analyze.compare import compare
from autotune.analyze.csv_files import Written, write_tables
from autotune.analyze.profile import (
    CollectiveTime,
    Gap,
    LinkTime,
    MemoryHolder,
    MemoryPoint,
    MemoryUse,
    Missing,
    OperatorTime,
    Profile,
)
from autotune.analyze.summary import ProfileSet, profile_sets
from autotune.analyze.tables import WHY_EMPTY, WHY_NO_DIFFERENCE, comparison_tables, tables
from autotune.errors import UserError
from tests.analyze.made import phases, profile, step

SPLIT = phases(forward_backward=60e3, communication=20e3, scheduling=20e3)


def full(rank: int) -> Profile:
    return profile(
        rank,
        [step(1, phases_us=SPLIT, host_us=100e3), step(2, phases_us=SPLIT, host_us=100e3)],
        cut=("trace_view.json",),
        operators=(OperatorTime("MatMul, fused", "AI_CORE", 5, 30e3, 30e3, 9e3),),
        collectives=(
            CollectiveTime("allReduce", "dp", 2, 30e3, 1, transit_us=10e3, size_bytes=4e8),
        ),
        links=(LinkTime(rank, 1 - rank, "HCCS", 4e8, 20e3, "dp"),),
        memory=MemoryUse(
            (MemoryPoint(5.0, "PTA", 3e9, 4e9),),
            {"PTA": 4e9},
            5.0,
            (MemoryHolder("aten::mm", 2e9, 1.0),),
        ),
        gaps=(Gap(3.0, 7e3, "host", "a", "b", 1),),
        missing=(Missing("call stacks", "with_stack was off"),),
    )


def written(folder: Path, profiles: list[Profile]) -> Written:
    return write_tables(folder, tables(profile_sets(profiles)), WHY_EMPTY)


def test_every_table_is_written_where_there_is_data_for_it(tmp_path: Path) -> None:
    found = written(tmp_path / "new" / "tables", [full(0), full(1)])
    assert set(found.written) == {f"{name}.csv" for name in WHY_EMPTY}
    assert found.left_out == {}
    assert {path.name for path in found.folder.iterdir()} == set(found.written)


def test_the_figures_are_those_of_the_profiles(tmp_path: Path) -> None:
    folder = written(tmp_path, [full(0), full(1)]).folder
    steps = pd.read_csv(folder / "steps.csv")
    assert list(steps["rank"]) == [0, 0, 1, 1]
    together = steps.computing_us + steps.communication_not_overlapped_us + steps.free_us
    assert (together == steps.stage_us).all()
    shares = pd.read_csv(folder / "phases.csv").groupby(["rank", "step"])["share"].sum()
    assert shares.to_list() == pytest.approx([1.0] * 4)
    operators = pd.read_csv(folder / "operators.csv")
    assert operators.loc[0, ["name", "count", "total_us"]].to_list() == ["MatMul, fused", 5, 30e3]
    assert pd.read_csv(folder / "communication.csv").bandwidth_gb_per_s[0] == pytest.approx(40)
    assert pd.read_csv(folder / "links.csv").bandwidth_gb_per_s[0] == pytest.approx(20)
    assert pd.read_csv(folder / "memory.csv").reserved_bytes[0] == 4e9
    peaks = pd.read_csv(folder / "memory_peaks.csv")
    assert peaks[peaks["rank"] == 0].name.to_list() == ["PTA", "aten::mm"]
    assert pd.read_csv(folder / "gaps.csv").duration_us[0] == 7e3
    assert pd.read_csv(folder / "ranks.csv").own_work_us.to_list() == [80e3, 80e3]
    missing = pd.read_csv(folder / "missing.csv")
    assert missing.what.to_list() == ["trace_view.json", "call stacks"] * 2
    assert "techniques" in pd.read_csv(folder / "advice.csv")


def test_what_is_unknown_stays_empty(tmp_path: Path) -> None:
    folder = written(tmp_path, [full(0)]).folder
    communication = pd.read_csv(folder / "communication.csv")
    assert communication[["wait_us", "idle_us", "overlapped_us"]].isna().all().all()


def test_what_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    found = written(tmp_path, [profile(0, [step()])])
    assert set(found.written) == {"steps.csv", "ranks.csv", "advice.csv"}
    assert found.left_out["links.csv"] == "no traffic between single ranks was recorded"
    assert set(found.left_out) == {f"{name}.csv" for name in WHY_EMPTY} - set(found.written)


def test_an_earlier_run_leaves_no_table_behind_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    written(tmp_path, [full(0)])
    written(tmp_path, [profile(0, [step()])])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"notes.txt", "steps.csv", "ranks.csv", "advice.csv"}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_out_that_is_no_folder_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to --out .*file.*give a folder"):
        written(tmp_path / "file", [full(0)])
    with pytest.raises(UserError, match="cannot write to --out"):
        written(tmp_path / "file" / "below", [full(0)])


def test_names_that_are_no_valid_text_are_written(tmp_path: Path) -> None:
    odd = profile(0, [], operators=(OperatorTime('a"b\n\udcff', "AI_CORE", 1, 1.0),))
    folder = written(tmp_path, [odd]).folder
    assert pd.read_csv(folder / "operators.csv").name.to_list() == ['a"b\n?']


def test_a_comparison_is_tables_too(tmp_path: Path) -> None:
    base, other = ProfileSet((full(0),)), ProfileSet((full(0),))
    found = write_tables(tmp_path, comparison_tables(compare(base, other)), WHY_NO_DIFFERENCE)
    assert set(found.written) == {f"{name}.csv" for name in WHY_NO_DIFFERENCE}
    operators = pd.read_csv(tmp_path / "compare_operators.csv")
    assert operators.loc[0, ["base_us", "other_us", "difference_us"]].to_list() == [15e3, 15e3, 0]
    assert pd.read_csv(tmp_path / "compare_memory.csv").base_bytes[0] == 4e9
    empty = ProfileSet((profile(0),))
    found = write_tables(tmp_path, comparison_tables(compare(empty, empty)), WHY_NO_DIFFERENCE)
    assert found.written == ()
    assert found.left_out["compare_steps.csv"] == "no step is marked in both"
