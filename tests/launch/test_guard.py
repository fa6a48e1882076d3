"""The guard ends what the sweep started, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from launch.guard import SweepGuard
from launch.markers import SWEEP
from launch.process_tree import is_alive

pytestmark = pytest.mark.ranks
ROOT = Path(__file__).resolve().parents[2]
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print(1, flush=True); time.sleep(60)"
)
SWEEPER = """
import sys, time
from pathlib import Path
from launch.guard import SweepGuard
SweepGuard.start(sys.argv[1], Path(sys.argv[2]))
print("watched", flush=True)
time.sleep(60)
"""


@pytest.fixture
def bystander() -> Iterator[psutil.Process]:
    """A process of another sweep."""
    process = subprocess.Popen(SLEEP, env={SWEEP: "another sweep"})
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def start_member(marker: str) -> psutil.Process:
    """A process of the sweep, in a session of its own, that does not heed SIGTERM."""
    argv = [sys.executable, "-S", "-c", STUBBORN]
    process = subprocess.Popen(
        argv, env={SWEEP: marker}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"1"
    return psutil.Process(process.pid)


def start_sweep(marker: str, folder: Path) -> subprocess.Popen[bytes]:
    """A process with a guard."""
    sweep = subprocess.Popen(
        [sys.executable, "-c", SWEEPER, marker, str(folder)],
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert sweep.stdout is not None
    assert sweep.stdout.readline() == b"watched\n"
    return sweep


def test_close_ends_the_sweeps_processes_only(tmp_path: Path, bystander: psutil.Process) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "socket").write_text("")
    marker = f"sweep-{os.getpid()}-{tmp_path.name}"
    guard = SweepGuard.start(marker, folder)
    member = start_member(marker)
    guard.close()
    guard.close()
    assert not is_alive(member)
    assert is_alive(bystander)
    assert not folder.exists()
    assert tmp_path.is_dir()


def test_a_killed_sweep_is_cleaned_up(tmp_path: Path, bystander: psutil.Process) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    marker = f"sweep-{os.getpid()}-{tmp_path.name}"
    sweep = start_sweep(marker, folder)
    guards = psutil.Process(sweep.pid).children()
    member = start_member(marker)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    _, alive = psutil.wait_procs([member, *guards], timeout=10)
    assert [one for one in alive if is_alive(one)] == []
    assert is_alive(bystander)
    assert not folder.exists()


def test_close_cleans_up_without_the_guard(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    marker = f"sweep-{os.getpid()}-{tmp_path.name}"
    guard = SweepGuard.start(marker, folder)
    member = start_member(marker)
    for process in guard._processes:
        process.kill()
    guard.close()
    assert not is_alive(member)
    assert not folder.exists()


def test_the_guard_heeds_no_signal_of_the_terminal(tmp_path: Path) -> None:
    guard = SweepGuard.start(f"sweep-{os.getpid()}-{tmp_path.name}", tmp_path / "ours")
    process = psutil.Process(guard._processes[0].pid)
    assert os.getsid(process.pid) != os.getsid(0)
    time.sleep(0.3)  # until its handlers are set
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    time.sleep(0.1)
    assert is_alive(process)
    guard.close()


def test_a_sweep_that_cannot_replace_a_guard_has_another(tmp_path: Path) -> None:
    """As while Ray joins, which lets no other thread of the process run, and may end it."""
    folder = tmp_path / "ours"
    folder.mkdir()
    marker = f"sweep-{os.getpid()}-{tmp_path.name}"
    sweep = start_sweep(marker, folder)
    member = start_member(marker)
    os.kill(sweep.pid, signal.SIGSTOP)
    psutil.Process(sweep.pid).children()[0].kill()
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    psutil.wait_procs([member], timeout=10)
    assert not is_alive(member)
    until = time.monotonic() + 5
    while folder.exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_killed_guard_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    marker = f"sweep-{os.getpid()}-{tmp_path.name}"
    sweep = start_sweep(marker, folder)
    killed = psutil.Process(sweep.pid).children()
    member = start_member(marker)
    for guard in killed:
        guard.kill()
    until = time.monotonic() + 5
    while not set(psutil.Process(sweep.pid).children()) - set(killed):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    _, alive = psutil.wait_procs([member], timeout=10)
    assert [one for one in alive if is_alive(one)] == []
    until = time.monotonic() + 5
    while folder.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
