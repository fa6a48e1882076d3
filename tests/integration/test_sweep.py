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


# The search alone, a step more than the least: certification has its own test.
QUICK = ("certify.enabled=false", "measure.max_steps=12", "measure.control_every=0")
SHORT = ("certify.max_rounds=3", "certify.max_rechecks=1", "measure.max_steps=12")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A finished and certified study of three trials."""
    program = make_program(tmp_path_factory.mktemp("swept") / "50% a=b,c#1 调优")
    assert program.run("model=tiny_vlm", "search.max_trials=3", *SHORT) == 0, program.output
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


def test_the_winner_is_certified_and_every_repeat_is_kept(swept: Program) -> None:
    document = yaml.safe_load((study(swept) / "best.yaml").read_text())
    trials = [json.loads(line) for line in lines(study(swept))]
    usable = [trial for trial in trials if trial["status"] == "ok"]
    if len(usable) < 2:  # the race and the limit have left nothing to run against
        assert document["gain"]["keep_baseline"] is True
        return
    repeats = [
        json.loads(line) for line in (study(swept) / "repeats.jsonl").read_text().splitlines()
    ]
    assert [repeat["repeat"] for repeat in repeats] == list(range(len(repeats)))
    assert document["certified"] is (document["batch_time"]["runs"] == 3)
    contest = [repeat for repeat in repeats if repeat["role"] == "certify"]
    assert len(contest) == 3 * len(document["certification"]["finalists"])
    if document["gain"]["keep_baseline"]:
        assert document["parameters"] == document["baseline"]["parameters"]
    report = (study(swept) / "report" / "report.md").read_text()
    assert "## Certification" in report
    assert "### The bottleneck of the baseline" in report


def test_every_ok_trial_has_a_profile_that_can_be_analyzed(swept: Program) -> None:
    for trial in map(json.loads, lines(study(swept))):
        folder = study(swept) / "trials" / f"{trial['trial']:04d}" / "profile"
        if trial["status"] == "ok":
            assert list(folder.glob("*.pt.trace.json.gz"))
    baseline = study(swept) / "trials" / "0000"
    assert len(list((baseline / "profile").glob("*.gz"))) == 4  # a full one: all ranks
    assert swept.run("analyze", str(baseline), "--out", "tables") == 0, swept.output
    steps = pd.read_csv(swept.folder / "tables" / "phases.csv")
    assert set(steps["rank"]) == {0, 1, 2, 3}


def test_what_cannot_be_profiled_is_answered_in_one_message(swept: Program) -> None:
    where = "study.name=tiny_vlm"
    for words, said in (
        (("trial=1",), "trial 1 has ended"),
        (("trial=99",), "there is no trial 99"),
        (("trial=x",), "trial=x is no number"),
        ((), "profile which trial?"),
        (("again=77",), "there is no finished trial 77"),
        (("trial=1", "stepz=2"), "profile has no key stepz; did you mean 'steps'"),
    ):
        assert swept.run("profile", where, *words) == 2, words
        assert said in swept.output, words
    assert "Traceback" not in swept.output


def test_a_running_trial_is_profiled_without_a_restart(program: Program) -> None:
    running = program.start(
        "model=tiny_dit",
        "search.max_trials=1",
        "measure.max_steps=64",
        *(
            "certify.enabled=false",
            "measure.precision=1e-9",
            "profile.full=null",
        ),
    )
    folder = study(program, "tiny_dit")
    until = time.monotonic() + 120
    records = folder / "trials" / "0000" / "rank0.jsonl"
    while not records.exists() and time.monotonic() < until:
        time.sleep(0.1)
    words = ("profile", "study.name=tiny_dit", "trial=0", "steps=2", "ranks=[0]", "warmup_steps=0")
    assert program.run(*words) == 0, program.output
    assert "analyze" in program.output
    assert running.wait(timeout=120) == 0, program.output
    steps = [json.loads(line) for line in records.read_text().splitlines()]
    steps = [step for step in steps if step["event"] == "step"]
    profiled = [step["step"] for step in steps if step["profiled"] and step["step"] >= 4]
    assert len(profiled) == 2
    assert any(not step["profiled"] for step in steps if step["step"] > profiled[-1])
    [trial] = map(json.loads, lines(folder))
    assert (trial["status"], trial["steps"] + trial["slow_steps"] + trial["warmup_steps"]) == (
        "ok",
        64,
    )


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
    changed = ("model=tiny_vlm", "memory.limit=0.8", *QUICK)
    assert swept.run(*changed, "search.max_trials=3") == 2
    assert "memory.limit: was 0.92, is now 0.8" in swept.output
    assert lines(folder) == before
    new = ("study.name=new one", "study.take_over=tiny_vlm", "search.max_trials=1")
    assert swept.run(*changed, *new) == 0, swept.output
    taken = [json.loads(line) for line in lines(study(swept, "new one"))]
    assert [trial.get("taken_from", {}).get("trial") for trial in taken] == [0, 1, 2, None]


def test_kill_9_loses_nothing_and_leaves_nothing(program: Program) -> None:
    command = ("model=tiny_dit", "search.max_trials=4", "study.name=a", *QUICK)
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
    command = ("model=tiny_dit", "search.max_trials=2", *QUICK)
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
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)  # of somebody who is impatient
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
