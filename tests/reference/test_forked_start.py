"""Ranks forked after `import torch` train, count and are capped as ranks that start cold."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from reference_cases import content

from autotune.ports import Deadlines, MeasurementPlan, Placement, TrialRequest
from autotune.profile_plan import ProfilePlan
from launch.node_job import NodeEnd, node_job
from launch.node_work import NodeWork
from launch.trainers.reference import ReferenceTrainer
from launch.trial_files import write_trial_files

pytestmark = pytest.mark.ranks
RANKS = 2
PLAN = MeasurementPlan(1, 2, profile=ProfilePlan(ranks=(0,)))


@dataclass(frozen=True)
class Trial:
    """How a trial ended, and the records of its ranks."""

    folder: Path
    end: NodeEnd
    records: list[list[dict[str, Any]]]

    def steps(self, name: str) -> list[list[Any]]:
        return [
            [record[name] for record in records if record["event"] == "step"]
            for records in self.records
        ]

    @property
    def peak(self) -> int:
        return max(value for rank in self.steps("peak_allocated_bytes") for value in rank)


def run_trial(folder: Path, forked: bool, memory_bytes: int | None = None) -> Trial:
    base = content("memory_vlm", {"offload_blocks": 1, "micro_batch_size": 4})
    trainer = ReferenceTrainer(base, "cpu", memory_bytes)
    folder.mkdir()
    program = trainer.trial_program({}, PLAN, folder)
    assert program.preload is not None
    if not forked:
        program = replace(program, preload=None)
    request = TrialRequest(0, 1, folder, program, Placement(1, RANKS, "cpu"), Deadlines())
    write_trial_files(request)
    work = NodeWork()
    there = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    job = node_job(request, 0, there, f"{os.getpid()}-{folder.name}")
    end = work.run(job, work.lease_meeting("127.0.0.1"))
    files = [folder / f"rank{rank}.jsonl" for rank in range(RANKS)]
    return Trial(folder, end, [list(map(json.loads, file.open())) for file in files])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forked")


@pytest.fixture(scope="module")
def cold(home: Path) -> Trial:
    return run_trial(home / "cold", forked=False)


@pytest.fixture(scope="module")
def forked(home: Path) -> Trial:
    return run_trial(home / "forked", forked=True)


def test_both_finish_without_a_word_on_the_way(cold: Trial, forked: Trial) -> None:
    for trial in (cold, forked):
        assert [one.code for one in trial.end.exits] == [0, 0], trial.end
        assert (trial.folder / "rank1.log").read_text() == ""
        assert (trial.folder / "rank0.log").read_text().count("\n") == PLAN.total_steps


def test_they_train_the_same(cold: Trial, forked: Trial) -> None:
    for name in ("loss", "grad_norm", "samples", "tokens"):
        assert forked.steps(name) == cold.steps(name)


def test_they_count_the_same_memory(cold: Trial, forked: Trial) -> None:
    assert forked.peak == pytest.approx(cold.peak, rel=0.002)


def test_a_forked_rank_is_profiled(forked: Trial) -> None:
    (profile,) = [one for one in forked.records[0] if one["event"] == "profile"]
    assert "error" not in profile
    assert (forked.folder / profile["path"]).exists()


def test_a_trial_fits_into_its_own_peak(home: Path, forked: Trial) -> None:
    assert [one.code for one in run_trial(home / "fits", True, forked.peak).end.exits] == [0, 0]


def test_a_trial_fails_where_its_peak_is_far_over_the_cap(home: Path, forked: Trial) -> None:
    trial = run_trial(home / "over", True, forked.peak // 2)
    assert "oom" in {one.get("kind") for records in trial.records for one in records}
    assert trial.end.exits[0].code == 1


def test_forked_ranks_may_use_several_threads(
    home: Path, forked: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    trial = run_trial(home / "threads", forked=True)
    assert "one by one" not in (trial.folder / "rank0.log").read_text()
    for ours, theirs in zip(trial.steps("loss"), forked.steps("loss"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_accelerators_are_not_forked() -> None:
    for device in ("cuda", "npu"):
        trainer = ReferenceTrainer(content("memory_vlm", {}), device)
        assert trainer.trial_program({}, PLAN, Path("/trial")).preload is None
