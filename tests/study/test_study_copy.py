"""`study.db` under a running sweep: locked, missing, replaced, overwritten. No result is lost."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy.exc import OperationalError

from autotune.errors import UserError
from autotune.ports import TrialRequest
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study import place
from autotune.study.paths import StudyPaths
from autotune.study.place import DatabaseFile, shown_url
from autotune.study.study_copy import Session, StudyCopy
from launch.simulated import SimulatedTrial

from ..sweep.conftest import Bench, measured


@pytest.fixture
def bench(tmp_path: Path, space: LegalSpace) -> Bench:
    return Bench(StudyPaths(tmp_path / "50% {a}?b,c#1 调优" / "bench"), space)


def run(bench: Bench, action: Callable[[], Any], trials: int = 6, trial: int = 3) -> None:
    """A sweep; the action happens while that trial runs, once."""
    left = [action]

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial == trial and left:
            left.pop()()
        return measured(point)

    bench.run(behave, sampler="random", max_trials=trials)


def check(bench: Bench, trials: int = 6) -> None:
    """Journal and database hold so many finished trials, and the same."""
    file = bench.paths.database
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    plain = shutil.copy(file, file.parents[2] / "copy.db")
    found = optuna.load_study(study_name="bench", storage=f"sqlite:///{plain}").trials
    lines = {record.trial: record for record in bench.study.journal.read()}
    assert [trial.number for trial in found] == sorted(lines) == list(range(trials))
    for trial in found:
        assert trial.user_attrs["parameters"] == dict(lines[trial.number].parameters)
        assert trial.user_attrs["status"] == lines[trial.number].status.value
        assert trial.value == (lines[trial.number].outcome.batch_time_s or trial.value)


def asides(bench: Bench) -> list[Path]:
    return sorted(bench.paths.root.glob("study.db.broken-*"))


@contextlib.contextmanager
def other_program(bench: Bench):
    with contextlib.closing(
        sqlite3.connect(bench.paths.database, isolation_level=None, check_same_thread=False)
    ) as connection:
        yield connection


def test_any_folder_will_do(bench: Bench) -> None:
    run(bench, lambda: None)
    check(bench)


def test_braces_in_a_url_are_no_template(bench: Bench, tmp_path: Path) -> None:
    """Optuna formats the URL that it is given."""
    bench.storage = f"sqlite:///{tmp_path}/{{db}} {{0}}"
    run(bench, lambda: None)
    assert (tmp_path / "{db} {0}").exists()


def test_what_lies_beside_a_file_goes_with_it(tmp_path: Path) -> None:
    """The journal of a write that was cut off would be played back into the next file."""
    database = tmp_path / "study.db"
    for name in ("study.db", "study.db-journal", "study.db-wal"):
        (tmp_path / name).write_text(name)
    aside = DatabaseFile(database).put_aside()
    assert aside is not None
    assert aside.read_text() == "study.db"
    assert aside.with_name(f"{aside.name}-journal").read_text() == "study.db-journal"
    assert aside.with_name(f"{aside.name}-wal").read_text() == "study.db-wal"
    assert not list(tmp_path.glob("study.db-*"))
    database.write_text("the next")
    assert DatabaseFile(database).put_aside() != aside


def test_a_file_that_is_deleted_is_written_again(bench: Bench, caplog) -> None:
    run(bench, bench.paths.database.unlink)
    check(bench)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert f"{bench.paths.database}: it was deleted" in caplog.text


def test_a_file_in_whose_place_an_older_one_was_put_is_brought_up_to_date(
    bench: Bench, caplog
) -> None:
    backup = bench.paths.root / "backup.db"
    run(bench, lambda: backup.write_bytes(bench.paths.database.read_bytes()), trials=4)
    run(bench, lambda: backup.replace(bench.paths.database), trials=8, trial=6)
    check(bench, 8)
    assert "another file took its place" in caplog.text


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 9000])
def test_a_file_that_is_overwritten_is_kept_aside_and_written_again(
    bench: Bench, caplog, content: bytes
) -> None:
    run(bench, lambda: bench.paths.database.write_bytes(content))
    check(bench)
    assert len(caplog.records) in (1, 2)
    assert "written again" in caplog.text or "up to date again" in caplog.text
    assert [len(path.read_bytes()) for path in asides(bench)] == ([len(content)] if content else [])


@pytest.mark.parametrize("page", [2, 20])
def test_a_page_that_is_overwritten_loses_no_result(bench: Bench, monkeypatch, page: int) -> None:
    """SQLite may notice it during this sweep, or the next start does."""
    monkeypatch.setattr("random.random", lambda: 0.0)  # Optuna's pauses between its attempts

    def overwrite() -> None:
        with bench.paths.database.open("r+b") as file:
            size = int.from_bytes(file.read(18)[16:], "big")
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
        # Another program's write: SQLite's own memory of the pages is no longer good.
        with bench.paths.database.open("r+b") as file:
            file.seek(24)
            file.write(b"\x7f\xff\xff\xff")

    run(bench, overwrite)
    assert len(bench.study.journal.read()) == 6
    run(bench, lambda: None, trials=8, trial=6)
    check(bench, 8)


def test_a_lock_is_waited_for(bench: Bench, monkeypatch, caplog) -> None:
    """One attempt waits 0.1 s here and 10 s by default, all of them 150 s by default."""
    monkeypatch.setattr(place, "_BUSY_S", 0.1)
    threads = []
    with contextlib.ExitStack() as stack:

        def lock() -> None:
            other = stack.enter_context(other_program(bench))
            other.execute("BEGIN EXCLUSIVE")
            threads.append(threading.Timer(1, lambda: other.execute("ROLLBACK")))
            threads[0].start()

        run(bench, lock)
        threads[0].join()
    check(bench)
    assert asides(bench) == []
    assert "database is locked; trying again for 150 s" in caplog.text


WRITES = "PRAGMA cache_size = 1; BEGIN EXCLUSIVE; UPDATE trial_user_attributes SET value_json = 1"
READS = "BEGIN; SELECT * FROM trials"  # which keeps writers out, too


@pytest.mark.parametrize(("statements", "until_trial"), [(WRITES, 99), (READS, 5)])
def test_a_lock_that_stays_does_not_hold_up_the_sweep(
    bench: Bench, monkeypatch, caplog, statements: str, until_trial: int
) -> None:
    """Nor does it break the file in which another program is in the middle of a write."""
    monkeypatch.setattr(place, "_BUSY_S", 0.05)
    monkeypatch.setattr(DatabaseFile, "patience_s", 0.2)
    with contextlib.ExitStack() as stack:
        held = []

        def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
            if request.trial == 3:
                held.append(stack.enter_context(other_program(bench)))
                for statement in statements.split("; "):
                    held[0].execute(statement).fetchone()
            if request.trial == until_trial:
                held[0].execute("ROLLBACK")
            return measured(point)

        bench.run(behave, sampler="random", max_trials=6)
    assert len(bench.study.journal.read()) == 6
    assert caplog.text.count("stays locked; the sweep goes on") == 1
    if until_trial == 5:
        check(bench)
    run(bench, lambda: None, trials=8, trial=6)
    check(bench, 8)
    assert asides(bench) == []


def test_a_file_that_was_given_up_is_tried_once_a_trial(tmp_path: Path, monkeypatch) -> None:
    """Whoever waited for it at every trial would lose the night."""
    monkeypatch.setattr(DatabaseFile, "patience_s", 0.5)
    attempts = []

    def connect(is_again: bool) -> Session:
        attempts.append(is_again)
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise OperationalError("BEGIN", {}, error)

    copy = StudyCopy(DatabaseFile(tmp_path / "study.db"), connect)
    copy.keep(0, [])
    assert len(attempts) > 1
    attempts.clear()
    copy.keep(1, [])
    copy.keep(2, [])
    assert len(attempts) == 2


def test_a_lock_at_the_start_is_told(bench: Bench, monkeypatch) -> None:
    run(bench, lambda: None)
    monkeypatch.setattr(place, "_BUSY_S", 0.05)
    monkeypatch.setattr(DatabaseFile, "patience_s", 0.2)
    with other_program(bench) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="locked; end the program that holds it"):
            run(bench, lambda: None, trials=8)
    assert asides(bench) == []


def test_an_end_does_not_wait_for_a_lock(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(place, "_BUSY_S", 0.1)
    with contextlib.ExitStack() as stack:

        def lock_and_interrupt() -> None:
            stack.enter_context(other_program(bench)).execute("BEGIN EXCLUSIVE")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(bench, lock_and_interrupt)
        before = time.monotonic()
        bench.sweep.stop("interrupted: stopped by the user")
        assert time.monotonic() - before < 2
    run(bench, lambda: None)
    assert bench.study.finished == 6


def test_a_line_taken_out_of_the_journal_is_measured_again(bench: Bench, caplog) -> None:
    run(bench, lambda: None)
    lines = bench.paths.journal.read_text().splitlines(keepends=True)
    bench.paths.journal.write_text("".join(lines[:2] + lines[3:]))
    run(bench, lambda: None, trials=6)
    assert bench.study.finished == 6
    assert "holds 1 results that trials.jsonl has not" in caplog.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql+psycopg://me:se%40cr@host/db?a=b", "postgresql+psycopg://me:***@host/db?a=b"),
        ("postgresql://me:s/e?c#r@et@host/db", "postgresql://me:***@host/db"),
        ("postgresql:/me:secret@host/db", "postgresql:/me:***@host/db"),
        ("me:secret@host/db", "me:***@host/db"),
        (
            "postgresql:///db?host=/tmp&password=secret&user=me",
            "postgresql:///db?host=/tmp&password=***&user=me",
        ),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("sqlite:////data/a:b@c/study.db", "sqlite:////data/a:b@c/study.db"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
