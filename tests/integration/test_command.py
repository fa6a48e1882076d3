"""A program that knows nothing of autotune, tuned by its command: docs/examples/command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .conftest import Program, make_program

pytestmark = [pytest.mark.ray, pytest.mark.ranks, pytest.mark.timeout(300)]

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "command"
WORDS = (
    *("--config-dir", str(EXAMPLE), "model=numpy_mlp", f"trainer.cwd={EXAMPLE}"),
    *("search.max_trials=3", "certify.enabled=false", "measure.control_every=0"),
    *("measure.min_steps=4", "measure.max_steps=6", "measure.warmup_steps=2"),
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A finished study of three trials, each a run of the program."""
    program = make_program(tmp_path_factory.mktemp("tuned") / "50% a=b,c#1 调优")
    assert program.run(*WORDS) == 0, program.output
    program.wait_until_nothing_is_left()
    return program


def study(program: Program) -> Path:
    return program.folder / "studies" / "numpy_mlp"


def test_every_trial_is_measured_by_what_the_program_printed(tuned: Program) -> None:
    text = (study(tuned) / "trials.jsonl").read_text()
    trials = [json.loads(line) for line in text.splitlines()]
    assert len(trials) == 3
    for trial in trials:
        folder = study(tuned) / "trials" / f"{trial['trial']:04d}"
        log = (folder / "rank0.log").read_text()
        printed = [line for line in log.splitlines() if line.startswith("step ")]
        records = (folder / "printed0.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in records]
        assert len(printed) == len(steps) <= 8
        assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
        milliseconds = [float(line.rsplit("|", 1)[1].split()[0]) for line in printed]
        assert [step["time_s"] for step in steps] == pytest.approx(
            [one / 1e3 for one in milliseconds]
        )
        assert trial["status"] in ("ok", "stopped"), trial["reason"]
        assert min(milliseconds) / 1e3 <= trial["batch_time_s"] <= max(milliseconds) / 1e3
        assert 30 << 20 < trial["peak_memory_bytes"] < 1 << 30
        assert trial["parameters"].keys() == {"micro_batch_size", "block", "recompute"}


def test_the_best_command_is_the_programs_own(tuned: Program) -> None:
    """It trains as it stands, once a person has said for how many steps."""
    best = yaml.safe_load((study(tuned) / "best.yaml").read_text())
    words = best["trainer"]["command"]
    assert words[:5] == ["env", "-C", str(EXAMPLE), sys.executable, "train.py"]
    assert words[-2:] == ["--steps", "<steps>"]
    ran = subprocess.run(
        [*words[:-1], "2"], capture_output=True, text=True, timeout=60, cwd="/", check=True
    )
    assert ran.stdout.count("loss") == 2
    micro_batch = best["parameters"]["micro_batch_size"]
    assert words[words.index("--micro-batch") + 1] == str(micro_batch)
    assert ("--recompute" in words) is best["parameters"]["recompute"]


def test_the_study_goes_on_and_is_told(tuned: Program) -> None:
    assert tuned.run("status", "study.name=numpy_mlp") == 0
    assert "3 of 3 trials finished" in tuned.output
    assert tuned.run(*WORDS) == 0
    assert len((study(tuned) / "trials.jsonl").read_text().splitlines()) == 3
