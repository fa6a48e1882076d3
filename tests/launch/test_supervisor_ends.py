"""How a supervised trial ends, and that nothing of it is left then."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from autotune.ports import Deadlines, EndKind, RankExit
from launch.markers import ROLE, SUPERVISOR_ROLE, TRIAL
from launch.node_job import NodeJob
from launch.process_tree import environment_of, marked

pytestmark = pytest.mark.ranks
MakeJob = Callable[..., NodeJob]
Start = Callable[[NodeJob], Any]

STUBBORN = """
def sleeper():
    code = ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "print(1, flush=True); time.sleep(600)")
    child = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True,
                             env={}, stdout=subprocess.PIPE)
    child.stdout.read(1)
    return child.pid
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pid = sleeper()
open(f"grandchild{RANK}", "w").write(str(pid))
record("start")
"""


def grandchildren(job: NodeJob) -> list[int]:
    return [int(path.read_text()) for path in job.folder.glob("grandchild*")]


def wait_for(what: Callable[[], bool], within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def all_started(job: NodeJob) -> bool:
    return all(job.records(rank).exists() for rank in job.ranks)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def supervisor_of(job: NodeJob) -> psutil.Process:
    (one,) = [
        process
        for process in marked(TRIAL, job.marker)
        if environment_of(process).get(ROLE) == SUPERVISOR_ROLE
    ]
    return one


def test_a_supervisor_that_is_stopped_is_lost_with_its_ranks(
    make_job: MakeJob, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for a file system that is gone: all deadlines are its own to keep."""
    monkeypatch.setattr("launch.node_work.SILENCE_S", 7.0)  # longer than between heartbeats
    job = make_job("record('start')\ntime.sleep(600)", ranks=2)
    run = start(job)
    wait_for(lambda: all_started(job))
    supervisor = supervisor_of(job)
    supervisor.suspend()
    end = run.end()
    assert end.kind is EndKind.LOST
    assert "said nothing for 7 s" in end.reason
    assert is_gone(supervisor.pid)
    assert marked(TRIAL, job.marker) == []


def test_a_quiet_supervisor_is_not_lost(
    make_job: MakeJob, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.node_work.SILENCE_S", 6.5)
    job = make_job("record('start')\ntime.sleep(9)", ranks=1)
    assert start(job).end().kind is EndKind.FINISHED


def test_all_ranks_exit_with_0(make_job: MakeJob, start: Start) -> None:
    job = make_job("print('rank', RANK, 'of', os.environ['WORLD_SIZE'])", ranks=4)
    end = start(job).end()
    assert end.kind is EndKind.FINISHED
    assert end.exits == tuple(RankExit(rank, 0) for rank in range(4))
    assert [job.log(rank).read_text() for rank in range(4)] == [
        f"rank {rank} of 4\n" for rank in range(4)
    ]
    assert sorted(path.suffix for path in job.folder.iterdir()) == [".log"] * 4 + [".py"]


def test_a_dead_rank_ends_sleeping_peers(make_job: MakeJob, start: Start) -> None:
    job = make_job("record('start')\nif RANK == 3: sys.exit(7)\ntime.sleep(600)", ranks=4)
    before = time.monotonic()
    end = start(job).end()
    assert time.monotonic() - before < 5
    assert (end.kind, end.reason) == (EndKind.RANK_FAILED, "rank 3 exited with code 7")
    assert end.exits[3] == RankExit(3, 7)
    assert all(one == RankExit(one.rank, -signal.SIGTERM, by_us=True) for one in end.exits[:3])


def test_peers_of_a_failed_rank_may_say_what_they_know(make_job: MakeJob, start: Start) -> None:
    job = make_job("if RANK == 1: sys.exit(1)\ntime.sleep(0.7); record('error', kind='oom')")
    assert start(job).end().kind is EndKind.RANK_FAILED
    assert json.loads(job.records(0).read_text())["kind"] == "oom"


def test_a_rank_that_a_signal_ended(make_job: MakeJob, start: Start) -> None:
    end = start(make_job("os.kill(os.getpid(), signal.SIGSEGV)", ranks=1)).end()
    assert (end.kind, end.reason) == (EndKind.RANK_FAILED, "rank 0 was ended by SIGSEGV")
    assert end.exits == (RankExit(0, -11),)


def test_stop_ends_what_ignores_it(make_job: MakeJob, start: Start) -> None:
    """Ranks and their children in sessions of their own, none of which heeds SIGTERM."""
    job = make_job(f"{STUBBORN}\ntime.sleep(600)")
    run = start(job)
    wait_for(lambda: all_started(job))
    run.work.stop(job.marker)
    end = run.end(within_s=5.0)
    assert end.kind is EndKind.STOPPED
    assert [(one.code, one.by_us) for one in end.exits] == [(-signal.SIGKILL, True)] * 2
    assert len(grandchildren(job)) == 2
    assert all(is_gone(pid) for pid in grandchildren(job))


def test_children_left_by_finished_ranks_are_ended(make_job: MakeJob, start: Start) -> None:
    job = make_job(STUBBORN)
    assert start(job).end().kind is EndKind.FINISHED
    assert len(grandchildren(job)) == 2
    assert all(is_gone(pid) for pid in grandchildren(job))


def test_the_end_of_the_owner_ends_everything(make_job: MakeJob, start: Start) -> None:
    job = make_job(f"{STUBBORN}\ntime.sleep(600)")
    run = start(job)
    wait_for(lambda: all_started(job))
    run.work._supervisor.stdin.close()  # as the kernel does when the owner is killed
    assert run.end(within_s=6.0).kind is EndKind.LOST
    assert all(is_gone(pid) for pid in grandchildren(job))


def test_a_killed_supervisor_leaves_no_ranks(make_job: MakeJob, start: Start) -> None:
    job = make_job("record('start')\ntime.sleep(600)")
    run = start(job)
    wait_for(lambda: all_started(job))
    os.kill(supervisor_of(job).pid, signal.SIGKILL)
    end = run.end(within_s=5.0)
    assert (end.kind, end.reason) == (EndKind.LOST, "the supervisor of the ranks was lost")
    assert marked(TRIAL, job.marker) == []


def test_a_program_that_is_not_there(make_job: MakeJob, start: Start) -> None:
    job = make_job("")
    job = NodeJob(**{**vars(job), "argv": ("/no/such/python", "x")})
    end = start(job).end()
    assert end.kind is EndKind.RANK_FAILED
    assert "rank 0 could not be started" in end.reason
    assert "/no/such/python" in end.reason
    assert end.exits == (RankExit(0, 127),)


def test_a_folder_that_the_node_does_not_see(make_job: MakeJob, start: Start) -> None:
    job = NodeJob(**{**vars(make_job("")), "folder": Path("/no/such/folder")})
    end = start(job).end()
    assert end.kind is EndKind.LOST
    assert "study.dir must lie on a file system that every node mounts" in end.reason


@pytest.mark.parametrize(
    ("code", "deadlines", "reason"),
    [
        ("time.sleep(600)", {"start_s": 0.8}, "rank 0 made no start record within start_s=0.8 s"),
        (
            "record('start')\nif RANK == 0: record('step')\ntime.sleep(600)",
            {"first_step_s": 0.8},
            "rank 1 made no first step within first_step_s=0.8 s",
        ),
        (
            "record('start'); record('step')\n"
            "while True:\n print('busy', flush=True); time.sleep(0.01)\n"
            " if RANK == 1: record('step')",
            {"step_s": 0.8},
            "rank 0 made no further step, and no end, within step_s=0.8 s",
        ),
    ],
)
def test_deadlines(
    make_job: MakeJob, start: Start, code: str, deadlines: dict[str, float], reason: str
) -> None:
    limits = Deadlines(**{"start_s": 30, "first_step_s": 30, "step_s": 30, **deadlines})
    end = start(make_job(code, deadlines=limits)).end(within_s=10.0)
    assert (end.kind, end.reason) == (EndKind.HUNG, reason)


def test_steps_put_the_deadline_off(make_job: MakeJob, start: Start) -> None:
    code = "record('start')\nfor _ in range(15): record('step'); time.sleep(0.1)"
    limits = Deadlines(start_s=30, first_step_s=30, step_s=0.8)
    assert start(make_job(code, deadlines=limits)).end().kind is EndKind.FINISHED
