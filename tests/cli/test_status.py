"""What `status` and `report` say of a study that has skipped trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.cli.main import main
from autotune.cli.wiring import compose_problem
from autotune.measure.outcome import Outcome, Status
from autotune.study.identity import Identity
from autotune.study.lock import sweep_lock
from autotune.study.paths import StudyPaths
from autotune.study.study import Study
from autotune.study.trial_record import GateNote, TrialRecord

FOLDER = "50% a=b,c#1 调优"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """One measured trial, one skipped, one that runs while another is skipped beside it."""
    folder = tmp_path / FOLDER
    problem = compose_problem(("model=tiny_dit", f"study.dir='{folder}'"), None)
    identity = Identity.of(problem.config, {"torch": "2"})
    study = Study.open(
        "tiny_dit",
        StudyPaths(folder),
        problem.space,
        identity,
        problem.data,
        problem.memory_limit_bytes,
    )
    ok = Outcome(Status.OK, "measured", 0.5, (0.45, 0.55), 8, peak_memory_bytes=50 << 20)
    refused = Outcome(Status.SKIPPED, "predicted peak memory 80.0 MiB")
    keep(study, problem.space.baseline, ok, None)
    keep(study, problem.space.points[5], refused, GateNote(0.01, 80 << 20))
    number = study.ask_for(problem.space.points[7])
    study.new_trial_folder(number)
    keep(study, problem.space.points[6], refused, GateNote(0.01, 80 << 20))
    return study


def keep(study: Study, point, outcome: Outcome, gate: GateNote | None) -> None:
    number = study.ask_for(point)
    if gate is None:
        study.new_trial_folder(number)
    study.finish(TrialRecord(number, point, outcome, 9.0, 0.0, 9.0, 1, "f", gate=gate))


def test_skipped_trials_are_told_apart_from_those_that_ran(study: Study, capsys) -> None:
    with sweep_lock(study.paths.lock):
        assert main(["status", f"study.dir='{study.paths.root}'"]) == 0
    printed = capsys.readouterr().out
    assert "1 of 24 trials finished; 1 of 228 legal points tried" in printed
    assert "memory gate: 2 launches were avoided" in printed
    assert "trial 2 runs: step 0" in printed
    assert "predicted peak memory 80.0 MiB" in printed


def test_a_report_and_a_table_are_written(study: Study, capsys) -> None:
    assert main(["report", f"study.dir='{study.paths.root}'"]) == 0
    report = study.paths.report_markdown.read_text()
    assert "## The memory gate\n\n2 launches were avoided" in report
    assert "1 of 228 legal points were tried" in report
    assert study.paths.report_table.read_text().count("skipped") == 2
    assert main(["export", f"study.dir='{study.paths.root}'"]) == 0
    assert "trial: 0" in capsys.readouterr().out
