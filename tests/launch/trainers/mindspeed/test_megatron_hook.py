"""The hook in a real process, around a package that makes its steps as MindSpeed-MM's does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import launch

RUN_HOOKED = Path(launch.__file__).parent / "rank/run_hooked.py"
TRAINING = """
import time
from types import SimpleNamespace

ARGS = SimpleNamespace(train_iters=0)


def get_args():
    return ARGS


def get_current_global_batch_size():
    return 24


class Value:
    def __init__(self, number):
        self.number = number

    def item(self):
        return self.number


def pretrain(iterations, stage):
    ARGS.train_iters = iterations
    made = train(stage)
    print("made", made)


def train(stage):
    iteration = 0
    while iteration < ARGS.train_iters:
        loss, skipped = train_step(iteration, stage)
        iteration += 1
        training_log(loss, {}, 1e-5, None, iteration, 1.0, False, skipped, 0.5, None, None)
        between()
    return iteration


def train_step(iteration, stage):
    time.sleep(0.2 if iteration == 2 else 0.02)
    if iteration == 1 and stage == "skips":
        return {}, 1
    return ({"loss": Value(3.0 - iteration)} if stage != "first" else {}), 0


def training_log(loss_dict, total_loss_dict, learning_rate, decoupled_learning_rate, iteration,
                 loss_scale, report_memory_flag, skipped_iter, grad_norm, params_norm,
                 num_zeros_in_grad):
    if iteration == 2 and loss_dict == {} and skipped_iter == 0 and FAILS:
        raise RuntimeError("NPU out of memory. Tried to allocate 2.00 GiB")
    return False


FAILS = False


def between():
    pass
"""
PROGRAM = """
import sys

import mindspeed_mm.training as training
from mindspeed_mm.training import pretrain

if __name__ == "__main__":
    training.FAILS = "--fail" in sys.argv
    pretrain(int(sys.argv[1]), sys.argv[2])
"""


def run(tmp_path: Path, *words: str, plan: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The records of a rank, and what its program printed."""
    package = tmp_path / "mm/mindspeed_mm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "training.py").write_text(TRAINING, encoding="utf-8")
    program = tmp_path / "mm/pretrain_vlm.py"
    program.write_text(PROGRAM, encoding="utf-8")
    records = tmp_path / "rank0.jsonl"
    environment = {
        **{name: os.environ[name] for name in ("PATH",)},
        "AUTOTUNE_RECORDS": str(records),
        "AUTOTUNE_HOOK_PLAN": json.dumps(plan),
        "RANK": "0",
        "WORLD_SIZE": "1",
    }
    done = subprocess.run(
        [sys.executable, str(RUN_HOOKED), "mindspeed_megatron", program.name, *words],
        cwd=program.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = records.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], done.stdout + done.stderr


def steps_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["event"] == "step"]


def test_each_step_is_recorded_with_its_time_and_loss(tmp_path: Path) -> None:
    records, said = run(tmp_path, "4", "last", plan={"steps": 4})
    assert [record["event"] for record in records] == ["start", *["step"] * 4, "end"]
    steps = steps_of(records)
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert [step["loss"] for step in steps] == [3.0, 2.0, 1.0, 0.0]
    assert all(step["samples"] == 24 and step["grad_norm"] == 0.5 for step in steps)
    assert steps[2]["time_s"] == pytest.approx(0.2, abs=0.1)
    assert all(0.02 <= steps[at]["time_s"] < 0.15 for at in (0, 1, 3))
    assert all(step["peak_device_bytes"] > 1 << 20 for step in steps)
    assert "made 4" in said


def test_the_plan_ends_the_program_by_its_own_loop(tmp_path: Path) -> None:
    records, said = run(tmp_path, "1000", "last", plan={"steps": 3})
    assert len(steps_of(records)) == 3
    assert "made 3" in said


def test_asked_to_finish_it_ends_two_steps_later(tmp_path: Path) -> None:
    """So that all ranks, a step apart at most, end at the same one."""
    (tmp_path / "finish").write_text("", encoding="utf-8")
    records, said = run(tmp_path, "1000", "last", plan={"steps": 900, "agree": True})
    assert len(steps_of(records)) == 3
    assert "made 3" in said
    assert records[-1]["event"] == "end"


def test_only_the_last_stage_knows_the_loss(tmp_path: Path) -> None:
    records, _ = run(tmp_path, "2", "first", plan={"steps": 2})
    assert [step.get("loss") for step in steps_of(records)] == [None, None]


def test_a_skipped_iteration_is_told(tmp_path: Path) -> None:
    records, _ = run(tmp_path, "3", "skips", plan={"steps": 3})
    assert [step["skipped"] for step in steps_of(records)] == [False, True, False]


def test_running_out_of_memory_is_told_as_that(tmp_path: Path) -> None:
    records, said = run(tmp_path, "5", "first", "--fail", plan={"steps": 5})
    assert (records[-1]["event"], records[-1]["kind"]) == ("error", "oom")
    assert "Traceback" in said
