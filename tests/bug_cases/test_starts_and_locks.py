"""Starts that meet each other, and what a killed sweep leaves for the next one."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest

from autotune.study import storage

from .conftest import Program, ended, once

ONE_IS_LEFT = "one is left"
"""A file that is made when all but one of the sweeps have ended."""


def start_together(
    program: Program, count: int, *words: str, before: Callable[[], None] = lambda: None
) -> list[int]:
    """Exit codes of sweeps that begin in one moment; {} in a word is the number of the sweep."""
    barrier = multiprocessing.get_context("fork").Barrier(count)

    def meet() -> None:
        before()
        barrier.wait(60)

    pids = [
        program.start(f"out{n}", *(word.format(n) for word in words), before=meet)
        for n in range(count)
    ]
    codes = {}
    while len(codes) < count:
        pid, status = os.waitpid(-1, 0)
        codes[pid] = os.waitstatus_to_exitcode(status)
        if len(codes) == count - 1:
            (program.folder / ONE_IS_LEFT).touch()
    return [codes[pid] for pid in pids]


def test_of_starts_in_one_second_one_runs_and_the_others_are_refused(program: Program) -> None:
    """Case 36, and case 4 for one study: nothing is mixed, and trial numbers are unique."""

    def outlast_the_others() -> None:
        until = time.monotonic() + 60
        while not (program.folder / ONE_IS_LEFT).exists() and time.monotonic() < until:
            time.sleep(0.05)

    program.behave = once(3, outlast_the_others)
    codes = start_together(program, 8)
    assert sorted(codes) == [0, *[2] * 7]
    refused = [program.printed(f"out{n}") for n, code in enumerate(codes) if code]
    assert all("another sweep runs on this study: process" in text for text in refused)
    assert [trial["trial"] for trial in program.trials] == list(range(12))
    assert program.states == ["COMPLETE"] * 12


@pytest.mark.parametrize("count", [8, 32])
def test_sweeps_that_share_a_database_lose_no_trial(
    program: Program, tmp_path: Path, count: int
) -> None:
    """Case 4: many writers, one SQLite file, one second."""
    url = f"sqlite:///{tmp_path}/shared.db"
    assert program.run("study.name=first", f"study.storage={url}", "search.max_trials=1") == 0
    words = ("study.name=s{}", f"study.storage={url}", "search.max_trials=2")
    codes = start_together(program, count, *words)
    assert codes == [0] * count
    for number in range(count):
        study = optuna.load_study(study_name=f"s{number}", storage=url)
        assert [(t.number, t.state.name) for t in study.trials] == [
            (0, "COMPLETE"),
            (1, "COMPLETE"),
        ]


def test_sweeps_that_make_a_shared_database_together(program: Program, tmp_path: Path) -> None:
    """Case 4: the database is not there yet."""
    barrier = multiprocessing.get_context("fork").Barrier(8)
    make = storage.RDBStorage

    def make_together(*given: Any, **more: Any) -> Any:
        storage.RDBStorage = make  # type: ignore[misc]
        barrier.wait(60)
        return make(*given, **more)

    def before() -> None:
        storage.RDBStorage = make_together  # type: ignore[misc,assignment]

    words = ("study.name=s{}", f"study.storage=sqlite:///{tmp_path}/shared.db")
    codes = start_together(program, 8, *words, "search.max_trials=1", before=before)
    assert codes == [0] * 8


def test_two_folders_take_turns_with_one_name_in_one_database(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = storage.datetime(2026, 11, 30, 12, 0, 0)
    monkeypatch.setattr(storage, "datetime", SimpleNamespace(now=lambda: second))
    url = f"sqlite:///{tmp_path}/shared.db"
    for trials, folder in enumerate("abab", start=1):
        words = (f"study.dir={folder}", f"study.storage={url}", f"search.max_trials={trials}")
        assert program.run(*words) == 0


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_sweep_killed_with_its_lock_does_not_keep_the_next_from_starting(
    program: Program,
) -> None:
    """Case 10."""
    program.behave = once(2, kill)
    assert ended(program.start("killed")) == -signal.SIGKILL
    before = time.monotonic()
    assert program.run("search.max_trials=4") == 0
    assert time.monotonic() - before < 5
    assert program.states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.filterwarnings("ignore:flock not supported")
def test_a_file_system_without_locks_keeps_none_either(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 10, on Lustre that was mounted without flock: the lock is a file there."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    program.behave = once(2, kill)
    assert ended(program.start("killed")) == -signal.SIGKILL
    assert program.run("search.max_trials=4") == 0


def test_a_file_system_that_refuses_locks_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NFS without its lock daemon."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    assert program.run() == 2
    assert str(program.study) in capsys.readouterr().err


@pytest.fixture
def another_program() -> Iterator[int]:
    """A process that is no sweep."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.parametrize("whose", ["this sweep's", "another program's"])
def test_a_number_of_a_process_that_is_given_again_holds_nothing(
    program: Program, another_program: int, whose: str
) -> None:
    """Case 10: in a container that is started again a sweep may well get the same number."""
    assert program.run("search.max_trials=1") == 0
    pid = os.getpid() if whose == "this sweep's" else another_program
    holder = {"pid": pid, "host": socket.gethostname()}
    (program.study / ".lock.holder").write_text(json.dumps(holder))
    assert program.run("search.max_trials=2") == 0


def test_a_sweep_killed_under_another_host_name_holds_nothing(program: Program) -> None:
    """Case 10: each new container has a name of its own."""
    assert program.run("search.max_trials=1") == 0
    holder = {"pid": 7, "host": "7f9c0a1b2c3d"}
    (program.study / ".lock.holder").write_text(json.dumps(holder))
    assert program.run("search.max_trials=2") == 0


def test_a_killed_sweep_that_nobody_reaps_holds_nothing(program: Program) -> None:
    """Case 10: in a container whose first process is no init, the dead stay as zombies."""
    program.behave = once(2, kill)
    pid = program.start("killed")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        assert program.run("search.max_trials=4") == 0
    finally:
        ended(pid)
