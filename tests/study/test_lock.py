"""One sweep at a time, and readers that never stand in its way."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from autotune.errors import UserError
from autotune.study.lock import is_locked, sweep_lock


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "study" / ".lock"


def test_a_second_sweep_is_refused_with_who_holds_the_study(lock: Path) -> None:
    with sweep_lock(lock):
        assert is_locked(lock)
        with pytest.raises(UserError, match=r"process .* on "), sweep_lock(lock):
            pass
    assert not is_locked(lock)


def test_a_killed_sweep_holds_nothing(lock: Path) -> None:
    lock.parent.mkdir()
    gone = {"pid": 2**22 + 1, "host": socket.gethostname()}
    lock.with_suffix(".holder").write_text(json.dumps(gone))
    assert not is_locked(lock)
    with sweep_lock(lock):
        assert is_locked(lock)


def test_a_reader_does_not_keep_a_sweep_from_starting(lock: Path) -> None:
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            is_locked(lock)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(200):
            with sweep_lock(lock):
                (lock.parent / "result").touch()
    finally:
        done.set()
        reader.join()


def test_a_start_that_writes_nothing_leaves_no_folder(lock: Path) -> None:
    with sweep_lock(lock):
        pass
    assert not lock.parent.exists()


def test_a_sweep_that_was_killed_on_another_host_holds_nothing(lock: Path) -> None:
    """As after a job that was moved to another node; its lock went with it."""
    lock.parent.mkdir()
    elsewhere = json.dumps({"pid": 1, "host": "a node that is gone"})
    lock.with_suffix(".holder").write_text(elsewhere)
    assert not is_locked(lock)
    with sweep_lock(lock):
        lock.with_suffix(".holder").write_text(elsewhere)
        assert is_locked(lock)
