"""Against real profiles and what torch_npu itself says of them. Skipped where they are absent."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from autotune.analyze.find import open_profiles
from autotune.analyze.profile import Profile, StepTime
from autotune.measure.records import PHASES

DATA = Path(__file__).parents[3] / "shared" / "data" / "profiles"
LEVEL1 = DATA / "ascend_level1"
RANK0 = LEVEL1 / "rank0_ascend_pt"

pytestmark = pytest.mark.skipif(not LEVEL1.is_dir(), reason="the real profiles are not here")

COLUMNS = {
    "Computing": "computing_us",
    "Communication(Not Overlapped)": "not_overlapped_us",
    "Overlapped": "overlapped_us",
    "Communication": "communication_us",
    "Free": "free_us",
    "Stage": "stage_us",
    "Bubble": "bubble_us",
    "Preparing": "preparing_us",
}


def own_row() -> dict[str, str]:
    with (RANK0 / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").open(newline="") as file:
        return next(csv.DictReader(file))


def without(tmp_path: Path, *names: str) -> Profile:
    """The profile of rank 0 when these files are taken away."""
    folder = shutil.copytree(RANK0, tmp_path / "profile", copy_function=shutil.copyfile)
    for name in names:
        (folder / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    (profile,) = open_profiles(folder)
    return profile


def assert_own_figures(step: StepTime) -> None:
    row = own_row()
    assert step.step == int(row["Step"])
    for column, name in COLUMNS.items():
        assert asdict(step)[name] == pytest.approx(float(row[column]), rel=1e-3), name


def assert_adds_up(step: StepTime) -> None:
    parts = step.computing_us + step.not_overlapped_us + step.free_us
    assert parts == pytest.approx(step.stage_us, abs=1)
    assert step.phases_us is not None
    assert set(step.phases_us) == set(PHASES)
    assert sum(step.phases_us.values()) == pytest.approx(step.total_us, rel=1e-6)


def test_step_times_are_the_csvs(tmp_path: Path) -> None:
    (step,) = without(tmp_path).steps
    assert_own_figures(step)
    assert_adds_up(step)


def test_the_trace_alone_gives_the_csvs_step_times(tmp_path: Path) -> None:
    (step,) = without(tmp_path, "step_trace_time.csv").steps
    assert_own_figures(step)
    assert_adds_up(step)


def test_kernels_alone_give_computing_and_communication(tmp_path: Path) -> None:
    (step,) = without(tmp_path, "step_trace_time.csv", "trace_view.json").steps
    row = own_row()
    for column in ("Computing", "Communication", "Free", "Stage"):
        assert asdict(step)[COLUMNS[column]] == pytest.approx(float(row[column]), rel=1e-3)


def test_the_optimizers_share_is_that_of_operator_details(tmp_path: Path) -> None:
    path = RANK0 / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv"
    with path.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["Name"].startswith("Optimizer.step#")]
    (step,) = without(tmp_path).steps
    assert step.phases_us is not None
    expected = sum(float(row["Device Total Duration(us)"]) for row in rows)
    assert step.phases_us["optimizer"] == pytest.approx(expected, abs=1)


def test_phases_of_a_trace_that_lost_its_last_events(tmp_path: Path) -> None:
    whole = RANK0 / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    cut = tmp_path / "trace_view.json"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * 0.98)])  # in the last flows
    (profile,) = open_profiles(cut)
    assert profile.cut == ("trace_view.json",)
    assert profile.steps[0].phases_us == pytest.approx(
        dict(without(tmp_path, "step_trace_time.csv").steps[0].phases_us or {}), rel=1e-3
    )


def test_a_step_that_was_cut_off_has_no_figures(tmp_path: Path) -> None:
    whole = RANK0 / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    cut = tmp_path / "trace_view.json"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * 0.7)])
    (profile,) = open_profiles(cut)
    assert profile.steps == ()
    assert any("50" in missing.what for missing in profile.missing)


def test_collectives_are_those_of_the_json(tmp_path: Path) -> None:
    content = json.loads((RANK0 / "ASCEND_PROFILER_OUTPUT" / "communication.json").read_text())
    total = content["step50"]["collective"]["Total Op Info"]
    profile = without(tmp_path)
    times = total["Communication Time Info"]
    elapsed = sum(call.elapsed_us for call in profile.collectives)
    assert elapsed == pytest.approx(times["Elapse Time(ms)"] * 1000)
    sizes = total["Communication Bandwidth Info"]["SDMA"]["Transit Size(MB)"]
    assert sum(c.size_bytes or 0 for c in profile.collectives) == pytest.approx(sizes * 1e6)
    # What computing hides of the collectives is what the step's row says.
    hidden = sum(call.overlapped_us or 0 for call in profile.collectives)
    assert hidden == pytest.approx(float(own_row()["Overlapped"]), rel=1e-3)


def test_links_have_the_bandwidth_of_the_matrix(tmp_path: Path) -> None:
    path = RANK0 / "ASCEND_PROFILER_OUTPUT" / "communication_matrix.json"
    matrix = json.loads(path.read_text())["step50"]["collective"]
    (totals,) = (links for name, links in matrix.items() if "-total@" in name)
    for link in without(tmp_path).links:
        own = totals[f"{link.source}-{link.target}"]["Bandwidth(GB/s)"]
        assert link.bandwidth_gb_per_s == pytest.approx(own, rel=1e-3)


def test_holders_add_up_to_the_peak(tmp_path: Path) -> None:
    memory = without(tmp_path).memory
    assert memory is not None
    path = RANK0 / "ASCEND_PROFILER_OUTPUT" / "memory_record.csv"
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Component"] == "PTA"]
    peak = max(float(row["Total Allocated(MB)"]) for row in rows) * 1024**2
    assert sum(holder.size_bytes for holder in memory.holders) == pytest.approx(peak)
    assert memory.peaks_bytes["PTA"] == 1452 * 1024**2  # reserved
    assert memory.peaks_bytes["module HCCL"] > 0


def test_both_ranks_of_a_folder() -> None:
    profiles = open_profiles(LEVEL1)
    assert [profile.rank for profile in profiles] == [0, 1]
    for profile in profiles:
        assert_adds_up(profile.steps[0])


def test_cluster_files() -> None:
    profiles = open_profiles(DATA / "ascend_cluster")
    assert [profile.rank for profile in profiles] == list(range(8))
    assert profiles[0].steps[0].computing_us == pytest.approx(80309.687)
    assert {call.operation for call in profiles[1].collectives} == {"broadcast"}
