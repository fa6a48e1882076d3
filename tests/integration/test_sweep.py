"""Whole sweeps over real training: the contract of the folder, kills, refusals."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml

from .conftest import Program, make_program

pytestmark = [pytest.mark.ray, pytest.mark.ranks, pytest.mark.timeout(600)]

CONTRACT_KEYS = {
    *("trial", "parameters", "status", "reason", "batch_time_s", "batch_time_ci95_s", "steps"),
    *("peak_memory_bytes", "breakdown_s", "cost_s", "started_at", "ended_at", "attempt"),
    "fingerprint",
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A finished study of three trials."""
    program = make_program(tmp_path_factory.mktemp("swept") / "50% a=b,c#1 调优")
    assert program.run("model=tiny_vlm", "search.max_trials=3") == 0, program.output
    program.wait_until_nothing_is_left()
    return program


def study(program: Program, name: str = "tiny_vlm") -> Path:
    return program.folder / "studies" / name


def lines(folder: Path) -> list[str]:
    path = folder / "trials.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_the_study_folder_is_that_of_the_contract(swept: Program) -> None:
    folder = study(swept)
    for name in ("config.yaml", "study.db", "trials.jsonl", "best.yaml"):
        assert (folder / name).is_file(), name
    assert (folder / "report" / "report.md").is_file()
    trials = [json.loads(line) for line in lines(folder)]
    assert [trial["trial"] for trial in trials] == [0, 1, 2]
    for trial in trials:
        assert not CONTRACT_KEYS - set(trial)
        inside = folder / "trials" / f"{trial['trial']:04d}"
        for rank in range(4):
            assert (inside / f"rank{rank}.jsonl").is_file()
            assert (inside / f"rank{rank}.log").is_file()


def test_a_measured_trial_has_a_time_a_peak_and_a_breakdown_that_adds_up(swept: Program) -> None:
    trial = json.loads(lines(study(swept))[0])
    assert trial["status"] == "ok"
    low, high = trial["batch_time_ci95_s"]
    assert low < trial["batch_time_s"] < high
    assert trial["peak_memory_bytes"] > 1 << 20
    phases = trial["breakdown_s"]
    assert set(phases) == {
        "data_loading",
        "forward_backward",
        "optimizer",
        "post_processing",
        "communication",
        "scheduling",
    }
    assert sum(phases.values()) == pytest.approx(trial["batch_time_s"], rel=0.03)


def test_the_reference_trainer_runs_from_best_yaml_as_it_stands(swept: Program) -> None:
    best = study(swept) / "best.yaml"
    document = yaml.safe_load(best.read_text())
    assert document["trainer"]["command"][-1] == str(best)
    ran = subprocess.run(
        document["trainer"]["command"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    steps = document["trainer"]["config"]["training"]["steps"]
    assert ran.stdout.count("loss") == steps


def test_the_verbs_on_a_finished_study(swept: Program) -> None:
    folder = study(swept)
    kept = (folder / "best.yaml").read_text()
    assert swept.run("status", "study.name=tiny_vlm") == 0
    assert "3 of 3 trials finished" in swept.output
    assert swept.run("export", "--out", "out.yaml", "study.name=tiny_vlm") == 0
    assert (swept.folder / "out.yaml").read_text() == kept
    (folder / "report" / "report.md").unlink()
    assert swept.run("report", "study.name=tiny_vlm") == 0
    assert "# tiny_vlm" in (folder / "report" / "report.md").read_text()
    table = pd.read_csv(folder / "report" / "trials.csv")
    assert list(table["trial"]) == [0, 1, 2]


def test_a_changed_study_is_refused_and_can_be_taken_over(swept: Program) -> None:
    folder, before = study(swept), lines(study(swept))
    changed = ("model=tiny_vlm", "memory.limit=0.8", "search.max_trials=3")
    assert swept.run(*changed) == 2
    assert "memory.limit: was 0.92, is now 0.8" in swept.output
    assert lines(folder) == before
    new = ("study.name=new one", "study.take_over=tiny_vlm", "search.max_trials=1")
    assert swept.run(*changed[:2], *new) == 0, swept.output
    taken = [json.loads(line) for line in lines(study(swept, "new one"))]
    assert [trial.get("taken_from", {}).get("trial") for trial in taken] == [0, 1, 2, None]


def test_kill_9_loses_nothing_and_leaves_nothing(program: Program) -> None:
    command = ("model=tiny_dit", "search.max_trials=4", "study.name=a")
    running = program.start(*command)
    folder = study(program, "a")
    until = time.monotonic() + 120
    while not lines(folder) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(random.uniform(0, 6))
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = (folder / "trials.jsonl").read_bytes()
    program.wait_until_nothing_is_left()
    assert program.run(*command) == 0, program.output
    after = (folder / "trials.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == 4


def test_ctrl_c_stops_and_the_same_command_goes_on(program: Program) -> None:
    command = ("model=tiny_dit", "search.max_trials=2")
    running = program.start(*command)
    folder = study(program, "tiny_dit")
    until = time.monotonic() + 120
    while not (folder / "trials" / "0000" / "rank0.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.1)
    # A second sweep on the same study is refused while the first one runs.
    assert program.run(*command) == 2
    assert f"process {running.pid} on" in program.output
    assert program.run("status") == 0
    assert "a sweep is running" in program.output
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130
    program.wait_until_nothing_is_left()
    assert "The same command goes on" in program.output
    assert program.run(*command) == 0, program.output
    assert len(lines(folder)) == 2


def test_nothing_feasible_is_exit_code_3_with_the_causes(program: Program) -> None:
    words = ("model=tiny_dit", "search.max_trials=2", "cluster.device_memory=1MiB")
    assert program.run(*words) == 3
    assert "no feasible configuration was found" in program.output
    assert "oom" in program.output
    assert "Traceback" not in program.output
    assert not (study(program, "tiny_dit") / "best.yaml").exists()


def test_check_starts_no_trial_and_is_quick_to_import() -> None:
    """`check` must not wait for Optuna, Ray or torch."""
    code = (
        "import sys; from autotune.cli.main import main; "
        "assert main(['check', 'model=tiny_vlm']) == 0; "
        "print(sorted({'optuna', 'ray', 'torch', 'pandas'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]", ran.stderr
