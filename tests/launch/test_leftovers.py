"""What killed processes leave in shared memory and in caches is removed, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.ports import EndKind
from launch.leftovers import SHARED_MEMORY, Leftovers, remove_noted
from tests.launch.conftest import MakeJob, Run

HOLD = """
import sys, time
files = [open(path, "w+b") for path in sys.argv[1:]]
for file in files: file.write(b"x"); file.flush()
print("open", flush=True)
time.sleep(600)
"""


@pytest.fixture
def segment() -> Iterator[Path]:
    path = SHARED_MEMORY / f"autotune test {uuid.uuid4()}"
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def hold() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """A process that has files open until it is killed."""
    held: list[subprocess.Popen[bytes]] = []

    def start(*paths: Path) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", HOLD, *map(str, paths)]
        held.append(subprocess.Popen(words, stdout=subprocess.PIPE))
        assert held[-1].stdout is not None
        assert held[-1].stdout.readline() == b"open\n"
        return held[-1]

    yield start
    for process in held:
        process.kill()
        process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_process_leaves_nothing(
    tmp_path: Path, segment: Path, hold: Callable[..., subprocess.Popen[bytes]]
) -> None:
    leftovers = Leftovers(tmp_path / "leftovers0.json", time.time())
    lock, other = tmp_path / "lock", tmp_path / "data.lock"
    process = hold(segment, lock, other)
    leftovers.look([process.pid])
    kill(process)
    assert set(leftovers.remove()) == {segment, lock}
    assert not segment.exists()
    assert not lock.exists()
    assert other.exists()  # no file of a kind that stops anyone
    assert not (tmp_path / "leftovers0.json").exists()


def test_what_was_there_before_or_is_in_use_stays(
    tmp_path: Path, segment: Path, hold: Callable[..., subprocess.Popen[bytes]]
) -> None:
    lock = tmp_path / "lock"
    leftovers = Leftovers(tmp_path / "leftovers0.json", time.time())
    mine, others = hold(segment, lock), hold(segment)
    leftovers.look([mine.pid])
    kill(mine)
    assert leftovers.remove() == [lock]
    assert segment.exists()
    kill(others)
    later = Leftovers(tmp_path / "leftovers1.json", time.time() + 5)
    again = hold(segment)
    later.look([again.pid])
    kill(again)
    assert later.remove() == []


def test_what_a_lost_supervisor_noted_is_removed(
    tmp_path: Path, segment: Path, hold: Callable[..., subprocess.Popen[bytes]]
) -> None:
    noted = tmp_path / "leftovers0.json"
    process = hold(segment)
    Leftovers(noted, time.time()).look([process.pid])
    assert remove_noted(noted) == []  # it lives
    Leftovers(noted, time.time()).look([process.pid])
    kill(process)
    content = json.loads(noted.read_text())
    noted.write_text(json.dumps({**content, "host": "elsewhere"}))
    assert remove_noted(noted) == []
    noted.write_text(json.dumps(content))
    assert remove_noted(noted) == [segment]
    assert remove_noted(noted) == []
    noted.write_text("{")
    assert remove_noted(noted) == []


def test_a_trial_that_is_killed_leaves_no_segment_and_no_lock(
    make_job: MakeJob, start: Callable[..., Run], segment: Path
) -> None:
    code = (
        "os.makedirs(str(RANK))\n"
        f"files = [open({str(segment)!r} + str(RANK), 'w'), open(f'{{RANK}}/lock', 'w')]\n"
        "record('start'); record('step'); time.sleep(1.5)\n"
        "os.kill(os.getpid(), signal.SIGKILL) if RANK == 1 else time.sleep(60)"
    )
    job = make_job(code)
    assert start(job).end().kind is EndKind.RANK_FAILED
    assert [path for path in SHARED_MEMORY.iterdir() if path.name.startswith(segment.name)] == []
    assert list(job.folder.rglob("lock")) == []
    assert list(job.folder.glob("leftovers*")) == []
