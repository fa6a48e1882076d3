"""Ranks forked from one process that has imported what they need: as if each had started cold."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from autotune.ports import Deadlines, EndKind, RankExit, RankProgram
from launch.markers import ROLE, SUPERVISOR_ROLE, TRIAL
from launch.node_job import NodeJob
from launch.process_tree import environment_of, marked

pytestmark = pytest.mark.ranks
MakeJob = Callable[..., NodeJob]
Start = Callable[[NodeJob], Any]

FACTS = """
import threading
open_files = sorted(int(name) for name in os.listdir("/proc/self/fd"))
facts = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "name": __name__, "file": __file__,
    "main": sys.modules["__main__"].__file__, "path": sys.path, "cwd": os.getcwd(),
    "env": {name: value for name, value in os.environ.items() if name != "MASTER_PORT"},
    "stdin": os.readlink("/proc/self/fd/0"), "open_files": len(open_files),
    "own_session": os.getsid(0) == os.getpid(), "own_group": os.getpgrp() == os.getpid(),
    "handlers": [str(signal.getsignal(n)) for n in (2, 13, 15, 17)],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "threads": [one.name for one in threading.enumerate()],
    "buffering": [sys.stdout.line_buffering, sys.stderr.line_buffering],
}
open(f"facts{RANK}.json", "w").write(json.dumps(facts))
print("to stdout"); print("to stderr", file=sys.stderr)
"""


@pytest.fixture
def preload() -> str:
    """The module that `heavy` writes."""
    return "heavy"


@pytest.fixture
def heavy(tmp_path: Path) -> Callable[[NodeJob, str], NodeJob]:
    """Writes the module that the job imports for all ranks."""

    def write(job: NodeJob, code: str) -> NodeJob:
        (job.folder / "heavy.py").write_text(f"import os, signal, sys, time\n{code}\n")
        return job

    return write


Heavy = Callable[[NodeJob, str], NodeJob]


def one_process(job: NodeJob) -> psutil.Process:
    """The process that imports; waits until it does."""
    until = time.monotonic() + 10
    while not (job.folder / "importing").exists():
        assert time.monotonic() < until, "it does not import"
        time.sleep(0.02)
    (one,) = [one for one in marked(TRIAL, job.marker) if ROLE not in environment_of(one)]
    return one


IMPORTS_FOR_EVER = "open('importing', 'w').close(); time.sleep(600)"


def test_the_module_is_imported_once(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    code = "import heavy\nprint(heavy.PID, os.getpid())"
    job = heavy(make_job(code, ranks=3), "PID = os.getpid()")
    end = start(job).end()
    assert end.exits == tuple(RankExit(rank, 0) for rank in range(3))
    logs = [job.log(rank).read_text().split() for rank in range(3)]
    assert len({imported for imported, _ in logs}) == 1
    assert len({pid for _, pid in logs} | {imported for imported, _ in logs}) == 4


def test_a_forked_rank_finds_what_a_cold_one_finds(
    make_job: MakeJob, start: Start, heavy: Heavy
) -> None:
    job = heavy(make_job(FACTS), "")
    odd = {"WORDS": "a=b c;$HOME '\"\n 调优 \udcff", "EMPTY": ""}
    job = replace(job, argv=(*job.argv, "a b", "--x=1", "", "*"), env={**job.env, **odd})
    found = []
    for preload in ("heavy", None):
        assert start(replace(job, preload=preload)).end().kind is EndKind.FINISHED
        files = [job.folder / f"facts{rank}.json" for rank in job.ranks]
        logs = [job.log(rank).read_text() for rank in job.ranks]
        found.append([json.loads(file.read_text()) for file in files] + logs)
    assert found[0] == found[1]
    assert found[0][1]["env"]["RANK"] == "1"
    assert found[0][1]["env"]["WORDS"] == odd["WORDS"]


def test_each_rank_has_its_own_exit_code(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    """Ranks that end at once, some before the supervisor has inherited them."""
    codes = "if RANK % 2: os.kill(os.getpid(), RANK + 3)\nos._exit(RANK)"
    end = start(heavy(make_job(codes, ranks=8), "")).end()
    assert [one.code for one in end.exits] == [0, -4, 2, -6, 4, -8, 6, -10]
    assert not any(one.by_us for one in end.exits)


def test_ranks_are_found_by_their_marker(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    code = "open(f'pid{RANK}', 'w').write(str(os.getpid()))\nrecord('start')\ntime.sleep(600)"
    job = heavy(make_job(code), "")
    run = start(job)
    until = time.monotonic() + 10
    while not all(job.records(rank).exists() for rank in job.ranks):
        assert time.monotonic() < until
        time.sleep(0.02)
    pids = {int((job.folder / f"pid{rank}").read_text()) for rank in job.ranks}
    others = [one for one in marked(TRIAL, job.marker) if ROLE not in environment_of(one)]
    assert {one.pid for one in others} == pids
    run.work.stop(job.marker)
    assert run.end().kind is EndKind.STOPPED


def test_what_the_import_prints_is_in_the_first_log(
    make_job: MakeJob, start: Start, heavy: Heavy
) -> None:
    job = heavy(make_job("print('rank', RANK)"), "print('a warning')")
    assert start(job).end().kind is EndKind.FINISHED
    assert job.log(0).read_text() == "a warning\nrank 0\n"
    assert job.log(1).read_text() == "rank 1\n"


def test_a_failed_import_is_told_by_every_rank(
    make_job: MakeJob, start: Start, heavy: Heavy
) -> None:
    job = heavy(make_job("import heavy"), "import no_such_module")
    end = start(job).end()
    assert end.kind is EndKind.RANK_FAILED
    assert end.exits == (RankExit(0, 1), RankExit(1, 1))
    for rank in job.ranks:
        last = job.log(rank).read_text().splitlines()[-1]
        assert last == "ModuleNotFoundError: No module named 'no_such_module'"
    assert "heavy could not be imported" in job.log(0).read_text()


def test_a_signal_in_the_import_ends_every_rank(
    make_job: MakeJob, start: Start, heavy: Heavy
) -> None:
    end = start(heavy(make_job(""), "os.kill(os.getpid(), signal.SIGSEGV)")).end()
    assert end.kind is EndKind.RANK_FAILED
    assert end.reason == "rank 0 was ended by SIGSEGV; rank 1 was ended by SIGSEGV"


def test_threads_of_the_import_are_not_lost(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    """They would be in a fork, so the ranks start cold and have threads of their own."""
    starts_thread = "import threading\nthreading.Thread(target=time.sleep, args=(1,)).start()"
    code = "print('heavy' in sys.modules); import heavy; print(len(os.listdir('/proc/self/task')))"
    job = heavy(make_job(code), starts_thread)
    assert start(job).end().kind is EndKind.FINISHED
    assert job.log(1).read_text() == "False\n2\n"
    first = "the ranks start one by one: importing heavy has started 1 threads"
    assert job.log(0).read_text().startswith(first)


def test_a_stop_while_it_imports(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    job = heavy(make_job(""), IMPORTS_FOR_EVER)
    run = start(job)
    one = one_process(job)
    run.work.stop(job.marker)
    end = run.end(within_s=5.0)
    assert end.kind is EndKind.STOPPED
    assert end.exits == tuple(RankExit(rank, -signal.SIGTERM, by_us=True) for rank in range(2))
    assert not one.is_running()


def test_a_deadline_while_it_imports(make_job: MakeJob, start: Start, heavy: Heavy) -> None:
    job = heavy(make_job("", deadlines=Deadlines(start_s=0.8)), IMPORTS_FOR_EVER)
    end = start(job).end(within_s=10.0)
    assert end.kind is EndKind.HUNG
    assert end.reason == "rank 0 made no start record within start_s=0.8 s"


def test_a_supervisor_killed_while_it_imports(
    make_job: MakeJob, start: Start, heavy: Heavy
) -> None:
    job = heavy(make_job(""), IMPORTS_FOR_EVER)
    run = start(job)
    one_process(job)
    (supervisor,) = [
        process
        for process in marked(TRIAL, job.marker)
        if environment_of(process).get(ROLE) == SUPERVISOR_ROLE
    ]
    os.kill(supervisor.pid, signal.SIGKILL)
    assert run.end(within_s=5.0).kind is EndKind.LOST
    assert marked(TRIAL, job.marker) == []


@pytest.mark.parametrize("argv", [("python", "train.py"), ("python", "-S", "-m", "x"), ("p", "-m")])
def test_only_a_module_of_python_can_be_forked(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="argv must be"):
        RankProgram(argv, Path(), preload="torch")


@pytest.mark.parametrize("name", ["", "a-b", "torch.", "/x/y.py", "import os"])
def test_what_is_preloaded_is_a_modules_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"no module's name, such as torch\.nn"):
        RankProgram(("python", "-m", "x"), Path(), preload=name)
