"""Ranks that do what nobody expects: the trial ends, and nothing of it is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from autotune.measure.read import TrialFollower, Voices
from autotune.ports import Deadlines, EndKind
from launch.markers import ROLE, TRIAL
from launch.node_job import NodeJob
from launch.process_tree import environment_of, marked
from launch.trial_files import ask_to_finish

from .supervised import QUICK, end_of, make_job

STEP = "record('start'); record('step')\n"


def ranks_left(job: NodeJob) -> list[psutil.Process]:
    """Processes of the trial but for its supervisor, which is about to exit."""
    return [one for one in marked(TRIAL, job.marker) if ROLE not in environment_of(one)]


@pytest.mark.ranks
@pytest.mark.parametrize(
    "stop", ["if RANK == 1: os.kill(os.getpid(), signal.SIGSTOP)", "os.killpg(0, signal.SIGSTOP)"]
)
def test_a_stopped_rank_is_a_hang(tmp_path: Path, stop: str) -> None:
    """Of SIGTERM it hears nothing; the others wait for it, or are stopped too."""
    job = make_job(tmp_path, f"{STEP}{stop}\ntime.sleep(600)", ranks=2)
    end = end_of(job)
    assert end.kind is EndKind.HUNG
    assert end.exits[1].by_us
    assert ranks_left(job) == []


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        open(f"daemon{RANK}.partial", "w").write(str(os.getpid()))
        os.rename(f"daemon{RANK}.partial", f"daemon{RANK}")
        os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
while not os.path.exists(f"daemon{RANK}"): time.sleep(0.01)
"""


@pytest.mark.ranks
def test_a_daemon_goes_with_its_rank(tmp_path: Path) -> None:
    """Forked twice, a session of its own, nothing of our environment, the rank's output open."""
    job = make_job(tmp_path, DAEMON, ranks=2)
    assert end_of(job).kind is EndKind.FINISHED
    pids = [int((job.folder / f"daemon{rank}").read_text()) for rank in range(2)]
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.ranks
@pytest.mark.parametrize("printed", [None, "megatron"])
def test_a_folder_that_vanishes_loses_its_trial_alone(tmp_path: Path, printed: str | None) -> None:
    code = f"""{STEP}
print(" iteration 1/ 9 | elapsed time per iteration (ms): 9.0 | loss: 1.0 |", flush=True)
import shutil
time.sleep(0.3)
if RANK == 0: shutil.rmtree(os.path.dirname(os.environ["AUTOTUNE_RECORDS"]))
print("x" * (1 << 22), flush=True)
time.sleep(600)
"""
    job = make_job(tmp_path, code, ranks=2, printed=printed)
    assert end_of(job).kind in (EndKind.HUNG, EndKind.LOST, EndKind.RANK_FAILED)
    assert ranks_left(job) == []


def test_asking_a_trial_to_finish_whose_folder_is_gone_ends_nothing(tmp_path: Path) -> None:
    ask_to_finish(tmp_path / "gone")


REWRITES = """
for attempt in range(2):
    with open(os.environ["AUTOTUNE_RECORDS"], "w") as records:
        for event in ("start", *["step"] * (12 if attempt == 0 else 8)):
            records.write(json.dumps({"event": event, "time_s": 0.1}) + "\\n"); records.flush()
            time.sleep(0.15)
"""


@pytest.mark.ranks
def test_records_that_are_begun_anew_are_progress(tmp_path: Path) -> None:
    """A program that opens its records with "w", started again by torchrun."""
    limits = Deadlines(start_s=30, first_step_s=30, step_s=0.9, stop_grace_s=0.5)
    assert end_of(make_job(tmp_path, REWRITES, deadlines=limits)).kind is EndKind.FINISHED


def test_records_that_are_begun_anew_are_read_anew(tmp_path: Path) -> None:
    follower = TrialFollower(tmp_path, Voices(1))
    step = '{"event": "step", "step": %d, "time_s": 1.0}\n'
    for steps in (9, 3):
        text = '{"event": "start"}\n' + "".join(step % number for number in range(steps))
        (tmp_path / "rank0.jsonl").write_text(text)
        follower.look()
        assert follower.steps == steps


@pytest.mark.ranks
@pytest.mark.parametrize("changes", [{"argv": ("true", "a\0b")}, {"env": {"A=B": "x"}}], ids=str)
def test_what_no_program_can_be_given_is_told(tmp_path: Path, changes: dict[str, object]) -> None:
    end = end_of(make_job(tmp_path, "", **changes))
    assert "rank 0 could not be started" in end.reason


@pytest.mark.ranks
def test_a_variable_that_is_too_long_is_told(tmp_path: Path) -> None:
    end = end_of(make_job(tmp_path, "", env={"A": "x" * 200_000}))
    assert end.kind is EndKind.RANK_FAILED
    assert "Argument list too long" in end.reason


@pytest.mark.ranks
def test_nobody_else_needs_to_read_a_trial(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert end_of(make_job(tmp_path, STEP, ranks=2)).kind is EndKind.FINISHED
    finally:
        os.umask(before)


@pytest.mark.ranks
@pytest.mark.parametrize("name", ["t m p", "x" * 200, "调优"])
def test_any_temporary_folder_will_do(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    code = "import tempfile; print(tempfile.mkdtemp())"
    job = make_job(tmp_path, code, env={"TMPDIR": str(place)})
    assert end_of(job).kind is EndKind.FINISHED
    assert Path(job.log(0).read_text(encoding="utf-8").strip()).parent == place


@pytest.mark.ranks
def test_a_dead_rank_is_not_waited_for_however_long_deadlines_are(tmp_path: Path) -> None:
    """Case 46: rank 3 goes after two iterations, and the others never say another word."""
    code = f"{STEP}record('step')\nif RANK == 3: sys.exit(1)\ntime.sleep(600)"
    limits = Deadlines(3600, 3600, 3600, QUICK.stop_grace_s)
    job = make_job(tmp_path, code, ranks=4, deadlines=limits)
    before = time.monotonic()
    assert end_of(job).reason == "rank 3 exited with code 1"
    assert time.monotonic() - before < 8
    assert ranks_left(job) == []
