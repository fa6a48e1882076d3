"""A training program of another's, run behind our hook with its own Python: records and ends.

The program is a stand-in with the modules, the loop and the signatures of MindSpeed-MM's native
trainer (fsdp/train/train_engine.py), whose ranks wait for each other at both ends of a step.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.ports import MeasurementPlan
from autotune.profile_plan import ProfilePlan
from launch.profile_request import request_profile
from launch.trainers.hooked import hooked_argv, hooked_plan

pytestmark = pytest.mark.ranks

OLDEST = Path("/root/.pyenv/versions/3.8.18/bin/python3.8")
PYTHONS = [sys.executable, *([str(OLDEST)] if OLDEST.exists() else [])]

ENGINE = """
import os, time
import torch

FOLDER, RANK, WORLD = os.environ["MEET"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
meetings = 0

def place(rank):
    return os.path.join(FOLDER, "%d.%d" % (meetings, rank))

def get_time(barrier):
    global meetings
    meetings += 1
    open(place(RANK), "w").close()
    while not all(os.path.exists(place(rank)) for rank in range(WORLD)):
        time.sleep(0.001)
    return time.time()


class Number:
    def __init__(self, value): self.value = value
    def item(self): return self.value


class TrainEngine:
    def __init__(self, args):
        self.args, self.iteration, self.consumed = args, 0, 0

    def train(self):
        while self.iteration < self.args.training.train_iters:
            start = get_time(barrier=True)
            self.step()
            self.iteration += 1
            elapsed = get_time(barrier=True) - start
            norm = Number(2.5)
            self.training_log(self.iteration, elapsed, 1e-4, self.consumed, self.losses(), norm)

    def step(self):
        time.sleep(float(os.environ.get("STEP_S", "0.01")))
        if os.environ.get("FAIL_AT") == "%d.%d" % (self.iteration + 1, RANK):
            exec(os.environ["FAIL_WITH"], {"torch": torch})

    def losses(self):
        return {} if "NO_LOSS" in os.environ else {"loss": 6.5 - self.iteration, "aux loss": 1.0}

    def training_log(
        self, iteration, elapsed_time_per_iteration, curr_step_lr, consumed_train_samples,
        loss_dict, grad_norm
    ):
        print("iteration", iteration, "of", self.args.training.train_iters, flush=True)
"""

TRAINER = """
import sys
from types import SimpleNamespace
from mindspeed_mm.fsdp.train.train_engine import TrainEngine

if __name__ == "__main__":
    steps, clip = int(sys.argv[1]), float(sys.argv[2])
    training = SimpleNamespace(train_iters=steps, clip_grad=clip, global_batch_size=16)
    TrainEngine(SimpleNamespace(training=training)).train()
    print("done", __file__, sys.argv, sys.path[0])
"""

# No more of torch than the hook asks about, and what records a profile.
TORCH = """
import sys
from types import SimpleNamespace
__version__ = "2.7.1"
class OutOfMemoryError(RuntimeError): pass
class _Entered:
    def __init__(self, *words, **named): pass
    def __enter__(self): return self
    def __exit__(self, *words): pass
class profile(_Entered):
    def export_chrome_trace(self, path): open(path, "w").write('{"traceEvents": []}')
autograd = SimpleNamespace(profiler=SimpleNamespace(profile=profile, record_function=_Entered))
distributed = SimpleNamespace(is_available=lambda: False)
"""

NPU = """
npu = SimpleNamespace(
    is_available=lambda: True, mem_get_info=lambda: (40 << 30, 64 << 30),
    max_memory_allocated=lambda: 10 << 30, max_memory_reserved=lambda: 20 << 30,
    memory_stats=lambda: {"num_alloc_retries": 2},
)
"""


class Hooked:
    """Runs the stand-in on ranks, in a checkout of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "Mind Speed 调优"
        self.trial = folder / "trial"
        self.trial.mkdir(parents=True)
        train = self.root / "mindspeed_mm" / "fsdp" / "train"
        train.mkdir(parents=True)
        (train / "train_engine.py").write_text(ENGINE)
        (train / "trainer.py").write_text(TRAINER)
        for package in (train, train.parent, train.parent.parent):
            (package / "__init__.py").touch()
        self.torch = self.root / "torch.py"
        self.torch.write_text(TORCH)
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self,
        plan: MeasurementPlan,
        ranks: int = 1,
        python: str = sys.executable,
        clip: float = 1.0,
        **env: str,
    ) -> None:
        meet = self.trial / "meet"
        meet.mkdir()
        script = "mindspeed_mm/fsdp/train/trainer.py"
        words = [script, str(plan.total_steps), str(clip)]
        for rank in range(ranks):
            self.started.append(
                subprocess.Popen(
                    hooked_argv(python, "mindspeed_fsdp2", words),
                    cwd=self.root,
                    env={
                        "PYTHONPATH": str(self.root),
                        "PYTHONDONTWRITEBYTECODE": "1",
                        "MEET": str(meet),
                        "RANK": str(rank),
                        "WORLD_SIZE": str(ranks),
                        "AUTOTUNE_RECORDS": str(self.trial / f"rank{rank}.jsonl"),
                        **hooked_plan(plan, nodes=1),
                        **env,
                    },
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )

    def wait(self) -> tuple[list[int], list[str]]:
        """Exit codes and outputs."""
        outputs = [process.communicate(timeout=30)[0] for process in self.started]
        return [process.returncode for process in self.started], outputs

    def run(self, *words: Any, **named: Any) -> list[str]:
        """The outputs of ranks that must end well."""
        self.start(*words, **named)
        codes, outputs = self.wait()
        assert set(codes) == {0}, outputs
        return outputs

    def records(self, rank: int = 0) -> list[dict[str, Any]]:
        path = self.trial / f"rank{rank}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def steps(self, rank: int = 0) -> list[dict[str, Any]]:
        return [one for one in self.records(rank) if one["event"] == "step"]

    def wait_for_step(self, number: int) -> None:
        until = time.monotonic() + 20
        while len(self.steps()) < number:
            assert time.monotonic() < until, "it makes no steps"
            time.sleep(0.005)


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    made = Hooked(tmp_path / "50% a=b,c#1")
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_rank_records_its_steps(hooked: Hooked, python: str, ranks: int) -> None:
    outputs = hooked.run(MeasurementPlan(1, 3), ranks, python)
    for rank in range(ranks):
        start, *steps, end = hooked.records(rank)
        assert (start["event"], end["event"]) == ("start", "end")
        assert (start["rank"], start["world_size"], start["device"]) == (rank, ranks, "cpu")
        assert start["torch"] == "2.7.1"
        assert [step["step"] for step in steps] == [1, 2, 3, 4]
        for number, step in enumerate(steps, 1):
            assert 0.01 < step["time_s"] < 5
            assert step["loss"] == 6.5 - number
            assert (step["grad_norm"], step["samples"], step["profiled"]) == (2.5, 16, False)
            assert 1 << 20 < step["peak_device_bytes"] < 1 << 28
        assert "iteration 4 of 4" in outputs[rank]


def test_the_script_runs_as_without_us(hooked: Hooked) -> None:
    (output,) = hooked.run(MeasurementPlan(0, 1))
    script = "mindspeed_mm/fsdp/train/trainer.py"
    folder = hooked.root / "mindspeed_mm" / "fsdp" / "train"
    assert f"done {script} ['{script}', '1', '1.0'] {folder}" in output


@pytest.mark.parametrize("python", PYTHONS)
def test_memory_of_an_accelerator(hooked: Hooked, python: str) -> None:
    hooked.torch.write_text(TORCH + NPU)
    hooked.run(MeasurementPlan(0, 2), python=python)
    assert hooked.records()[0]["device"] == "npu"
    for step in hooked.steps():
        assert step["peak_allocated_bytes"] == 10 << 30
        assert step["peak_reserved_bytes"] == 20 << 30
        assert step["alloc_retries"] == 2
        assert step["peak_device_bytes"] == 24 << 30


def test_what_the_program_does_not_compute_is_not_told(hooked: Hooked) -> None:
    """A gradient norm without clipping is none; a loss that is absent is no broken step."""
    hooked.run(MeasurementPlan(0, 2), clip=0.0, NO_LOSS="1")
    for step in hooked.steps():
        assert "grad_norm" not in step
        assert "loss" not in step


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("raise ValueError('no good')", "exception", "ValueError: no good"),
        ("raise torch.OutOfMemoryError('it is full')", "oom", "OutOfMemoryError: it is full"),
        ("raise RuntimeError('NPU out of memory. Tried')", "oom", "RuntimeError: NPU out of"),
    ],
)
def test_an_exception_is_the_last_record(
    hooked: Hooked, code: str, kind: str, message: str
) -> None:
    hooked.start(MeasurementPlan(0, 5), FAIL_AT="3.0", FAIL_WITH=code)
    codes, outputs = hooked.wait()
    assert codes == [1]
    assert "Traceback" in outputs[0]
    assert len(hooked.steps()) == 2
    last = hooked.records()[-1]
    assert (last["event"], last["kind"]) == ("error", kind)
    assert last["message"].startswith(message)
    assert last["peak_device_bytes"] > 1 << 20


@pytest.mark.parametrize("python", PYTHONS)
def test_all_ranks_finish_after_the_same_step(hooked: Hooked, python: str) -> None:
    hooked.start(MeasurementPlan(1, 1000), 2, python, STEP_S="0.03")
    hooked.wait_for_step(3)
    (hooked.trial / "finish").touch()
    assert hooked.wait()[0] == [0, 0]
    first, second = hooked.steps(0), hooked.steps(1)
    assert len(first) == len(second) < 30
    assert hooked.records(0)[-1] == hooked.records(1)[-1] == {"event": "end"}


def test_a_planned_profile_comes_last_and_is_marked(hooked: Hooked) -> None:
    plan = MeasurementPlan(1, 3, profile=ProfilePlan(steps=2, warmup_steps=1, ranks=(1,)))
    hooked.run(plan, 2)
    for rank in (0, 1):
        assert [step["profiled"] for step in hooked.steps(rank)] == [False] * 4 + [True] * 3
    assert not [one for one in hooked.records(0) if one["event"] == "profile"]
    (profile,) = [one for one in hooked.records(1) if one["event"] == "profile"]
    assert (profile["id"], profile["steps"]) == (None, [6, 7])
    assert (hooked.trial / profile["path"]).stat().st_size == profile["bytes"]


def test_a_trial_that_finishes_early_still_makes_its_profile(hooked: Hooked) -> None:
    plan = MeasurementPlan(1, 1000, profile=ProfilePlan(steps=2, warmup_steps=0, ranks=(0,)))
    hooked.start(plan, 2, STEP_S="0.03")
    hooked.wait_for_step(3)
    (hooked.trial / "finish").touch()
    assert hooked.wait()[0] == [0, 0]
    for rank in (0, 1):
        marks = [step["profiled"] for step in hooked.steps(rank)]
        assert marks == [False] * (len(marks) - 2) + [True] * 2
    (profile,) = [one for one in hooked.records() if one["event"] == "profile"]
    assert profile["steps"] == [len(hooked.steps()) - 1, len(hooked.steps())]


def test_a_profile_that_is_asked_for_is_made_by_all_at_once(hooked: Hooked) -> None:
    hooked.start(MeasurementPlan(1, 40), 2, STEP_S="0.03")
    hooked.wait_for_step(3)
    asked = ProfilePlan(steps=2, warmup_steps=1, ranks=(-1,))
    name = request_profile(hooked.trial, asked)
    assert hooked.wait()[0] == [0, 0]
    numbers = [[step["step"] for step in hooked.steps(rank) if step["profiled"]] for rank in (0, 1)]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 3
    assert len(hooked.steps()) == 41
    for rank in (0, 1):
        (profile,) = [one for one in hooked.records(rank) if one["event"] == "profile"]
        assert (profile["id"], profile["steps"]) == (name, numbers[rank][1:])


def test_a_profile_for_which_no_steps_are_left_is_answered(hooked: Hooked) -> None:
    """Asked for under the profile that was planned, which is the last that a trial makes."""
    plan = MeasurementPlan(0, 2, profile=ProfilePlan(steps=12, warmup_steps=0, ranks=(0,)))
    hooked.start(plan, 2, STEP_S="0.03")
    hooked.wait_for_step(4)
    name = request_profile(hooked.trial, ProfilePlan(steps=2, warmup_steps=0, ranks=(0,)))
    assert hooked.wait()[0] == [0, 0]
    planned, asked = [one for one in hooked.records() if one["event"] == "profile"]
    assert len(planned["steps"]) == 12
    assert asked["id"] == name
    assert "no steps are left" in asked["error"]
    assert len(hooked.steps()) == 14


def test_a_profiler_that_fails_ends_no_trial(hooked: Hooked) -> None:
    hooked.torch.write_text(TORCH.replace("def export_chrome_trace", "def other"))
    plan = MeasurementPlan(0, 2, profile=ProfilePlan(steps=1, warmup_steps=0, ranks=(0,)))
    hooked.run(plan)
    (profile,) = [one for one in hooked.records() if one["event"] == "profile"]
    assert "AttributeError" in profile["error"]
    assert len(hooked.steps()) == 3


SHADOW = """
import importlib.util, sys
ours = ("autotune", "search_spaces", "ray", "optuna")
print([name for name in ours if importlib.util.find_spec(name)])
import launch.rank, numpy
print(numpy.WHOSE, [path for path in sys.path if path.endswith("site-packages")])
"""


def test_of_what_is_ours_only_launch_can_be_imported(hooked: Hooked, tmp_path: Path) -> None:
    """Installed, `launch` lies beside our own numpy, which must not outdo the program's."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "launch").symlink_to(Path(__file__).parents[2] / "launch")
    (site / "numpy.py").write_text("WHOSE = 'ours'")
    (hooked.root / "numpy.py").write_text("WHOSE = 'theirs'")
    (hooked.root / "shadow.py").write_text(SHADOW)
    run_hooked = site / "launch" / "rank" / "run_hooked.py"
    ran = subprocess.run(
        [sys.executable, "-S", str(run_hooked), "mindspeed_fsdp2", "shadow.py"],
        cwd=hooked.root,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == ["[]", "theirs []"], ran.stderr


def test_outside_a_trial_nothing_is_written_or_ended(hooked: Hooked) -> None:
    """The hook is harmless where somebody starts the same words by hand."""
    meet = hooked.trial / "meet"
    meet.mkdir()
    ran = subprocess.run(
        hooked_argv(None, "mindspeed_fsdp2", ["mindspeed_mm/fsdp/train/trainer.py", "3", "1.0"]),
        cwd=hooked.root,
        env={
            "PYTHONPATH": str(hooked.root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "MEET": str(meet),
            "RANK": "0",
            "WORLD_SIZE": "1",
        },
        capture_output=True,
        text=True,
    )
    assert "iteration 3 of 3" in ran.stdout, ran.stderr
    assert [path.name for path in hooked.trial.iterdir()] == ["meet"]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_hook_waits_for_its_module_and_is_laid_once(hooked: Hooked, python: str) -> None:
    """What a program asks of its modules' loaders is answered as before."""
    (hooked.root / "late.py").write_text(
        "import inspect, sys\n"
        "assert not [name for name in sys.modules if name.startswith('mindspeed')]\n"
        "import json, torch\n"
        "from mindspeed_mm.fsdp.train import train_engine as first\n"
        "import mindspeed_mm.fsdp.train.train_engine as again\n"
        "assert first is again\n"
        "assert 'class TrainEngine' in inspect.getsource(first)\n"
        "print(first.TrainEngine.train.__name__, first.__spec__.name)\n"
        "try:\n import mindspeed_mm.fsdp.nope\n"
        "except ModuleNotFoundError as error: print(error.name)\n"
    )
    ran = subprocess.run(
        hooked_argv(python, "mindspeed_fsdp2", ["late.py"]),
        cwd=hooked.root,
        env={"RANK": "0", "WORLD_SIZE": "1", "MEET": "x", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.split() == [
        "train",
        "mindspeed_mm.fsdp.train.train_engine",
        "mindspeed_mm.fsdp.nope",
    ], ran.stderr
