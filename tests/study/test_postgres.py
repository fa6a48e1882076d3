"""Studies on a real PostgreSQL server: shared, restarted, gone, locked, and written by two."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import optuna
import pytest
from psycopg import sql
from sqlalchemy import create_engine

from autotune.errors import UserError
from autotune.ports import TrialRequest
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.claim import StudyClaim, Writer
from autotune.study.paths import StudyPaths
from autotune.study.place import DatabaseServer
from launch.simulated import SimulatedTrial

from ..sweep.conftest import Bench, measured
from .postgres_server import VARIABLE, WHY_SKIPPED, Database, Server, other_sweep

pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=WHY_SKIPPED)

ANOTHER = Writer("otherhost", 4711, 0.0, "/data/other")


@pytest.fixture(scope="module")
def server() -> Server:
    return Server.given()


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    with server.new_database() as database:
        yield database


@pytest.fixture
def bench(database: Database, tmp_path: Path, space: LegalSpace) -> Bench:
    return new_bench(tmp_path / "mine", space, database.url())


def new_bench(folder: Path, space: LegalSpace, url: str) -> Bench:
    return Bench(StudyPaths(folder), space, storage=url)


def at(trial: int, action: Callable[[], Any]) -> Callable[..., SimulatedTrial]:
    """The action happens while that trial runs, once."""
    left = [action]

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial == trial and left:
            left.pop()()
        return measured(point)

    return behave


def run(bench: Bench, trials: int, behave: Callable[..., SimulatedTrial] | None = None) -> None:
    bench.run(
        behave or (lambda point, request: measured(point)), sampler="random", max_trials=trials
    )


def kept(database: Database, name: str = "bench") -> list[tuple[int, str, float | None]]:
    """What the tables hold of a study: number, state, value."""
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT number, state, value FROM trials JOIN studies USING (study_id)"
            " LEFT JOIN trial_values USING (trial_id) WHERE study_name = %s ORDER BY number",
            [name],
        )
        return rows.fetchall()


def names(database: Database) -> set[str]:
    with database.connection() as connection:
        return {name for (name,) in connection.execute("SELECT study_name FROM studies")}


def agrees(bench: Bench, database: Database, trials: int) -> bool:
    """Whether database and journal hold so many finished trials, and the same."""
    lines = {record.trial: record for record in bench.study.journal.read()}
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT number, key, value_json FROM trials JOIN studies USING (study_id)"
            " JOIN trial_user_attributes USING (trial_id) WHERE study_name = 'bench'"
        ).fetchall()
    told = {(number, key): json.loads(value) for number, key, value in rows}
    found = kept(database)
    return len(lines) == len(found) == trials and all(
        state == "COMPLETE"
        and told[number, "status"] == lines[number].status.value
        and told[number, "parameters"] == dict(lines[number].parameters)
        and value == (lines[number].outcome.batch_time_s or value)
        for number, state, value in found
    )


def later(seconds: float, action: Callable[[], Any]) -> threading.Thread:
    def act() -> None:
        time.sleep(seconds)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_study_is_created_and_resumed_and_agrees_with_its_journal(
    bench: Bench, database: Database
) -> None:
    run(bench, 3)
    assert agrees(bench, database, 3)
    run(bench, 6)
    assert agrees(bench, database, 6)
    study = optuna.load_study(study_name="bench", storage=database.url())
    assert study.best_value == min(value for _, _, value in kept(database))
    assert study.user_attrs["sweep"]["pid"] == os.getpid()


def test_a_server_that_restarts_costs_no_trial(
    bench: Bench, database: Database, server: Server, caplog
) -> None:
    run(bench, 5, at(2, lambda: server.control("restart")))
    assert agrees(bench, database, 5)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "up to date again" in caplog.text


def test_a_server_that_is_gone_is_waited_for(
    bench: Bench, database: Database, server: Server, caplog
) -> None:
    threads = []

    def stop() -> None:
        server.control("stop")
        threads.append(later(0.5, lambda: server.control("start")))

    run(bench, 5, at(2, stop))
    threads[0].join()
    assert agrees(bench, database, 5)
    assert "trying again for 300 s" in caplog.text


def test_a_server_that_stays_away_ends_the_sweep_and_loses_nothing(
    bench: Bench, database: Database, server: Server, monkeypatch
) -> None:
    monkeypatch.setattr(DatabaseServer, "patience_s", 0.3)
    try:
        with pytest.raises(UserError) as ended:
            run(bench, 5, at(2, lambda: server.control("stop")))
    finally:
        server.control("start")
    message = str(ended.value)
    assert ended.value.exit_code == 2
    assert "postgresql://autotune:***@/test_" in message
    assert "the same command goes on" in message
    assert len(bench.study.journal.read()) == 3
    assert [state for _, state, _ in kept(database)] == ["COMPLETE", "COMPLETE", "RUNNING"]
    run(bench, 5)
    assert agrees(bench, database, 5)


def test_an_end_does_not_wait_for_a_server_that_is_gone(
    bench: Bench, database: Database, server: Server
) -> None:
    def stop_then_interrupt() -> None:
        server.control("stop")
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            run(bench, 5, at(2, stop_then_interrupt))
        before = time.monotonic()
        bench.sweep.stop("interrupted: stopped by the user")
        assert time.monotonic() - before < 3
    finally:
        server.control("start")
    run(bench, 5)
    assert [state for _, state, _ in kept(database)].count("FAIL") == 1
    assert bench.study.finished == 5


def test_a_lock_on_the_tables_is_waited_for(bench: Bench, database: Database, caplog) -> None:
    """Also one that lasts longer than one attempt: 0.5 s here, a minute by default."""
    bench.storage += "&options=-c%20lock_timeout%3D500"
    threads = []
    with database.connection() as other:

        def lock() -> None:
            other.execute("BEGIN")
            other.execute("LOCK TABLE trials, trial_user_attributes IN ACCESS EXCLUSIVE MODE")
            threads.append(later(1.2, lambda: other.execute("ROLLBACK")))

        run(bench, 5, at(2, lock))
        threads[0].join()
    assert agrees(bench, database, 5)
    assert "lock timeout" in caplog.text


def test_a_reader_that_stays_does_not_stand_in_the_way(bench: Bench, database: Database) -> None:
    with database.connection() as reader:

        def read() -> None:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT * FROM trials")

        run(bench, 5, at(2, read))
        assert agrees(bench, database, 5)


def test_studies_of_other_names_are_not_seen(bench: Bench, tmp_path, database, space) -> None:
    optuna.create_study(study_name="theirs", storage=database.url()).ask()
    run(bench, 3)
    assert kept(database, "theirs") == [(0, "RUNNING", None)]
    assert agrees(bench, database, 3)


def test_a_study_that_a_person_deletes_is_written_again(
    bench: Bench, database: Database, caplog
) -> None:
    def delete() -> None:
        optuna.delete_study(study_name="bench", storage=bench.storage)

    run(bench, 5, at(2, delete))
    assert agrees(bench, database, 5)
    assert "up to date again" in caplog.text


def test_trials_that_a_person_adds_are_no_trials_of_the_sweep(
    bench: Bench, database: Database
) -> None:
    def enqueue() -> None:
        study = optuna.load_study(study_name="bench", storage=bench.storage)
        study.enqueue_trial({"micro_batch_size": 0})

    run(bench, 5, at(2, enqueue))
    assert agrees(bench, database, 5)


def test_a_second_sweep_is_refused_while_the_first_lives_and_takes_over_when_it_is_dead(
    bench: Bench, database: Database, tmp_path: Path, caplog
) -> None:
    with other_sweep(database, tmp_path / "theirs") as first:
        with pytest.raises(UserError) as refused:
            run(bench, 3)
        assert f"process {first.pid} on " in str(refused.value)
        assert str(tmp_path / "theirs") in str(refused.value)
        assert "study.name=NAME" in str(refused.value)
        assert ":autotune@" not in str(refused.value)
        theirs = kept(database)
        assert theirs == [(0, "COMPLETE", 7.0), (1, "COMPLETE", 8.0), (2, "RUNNING", None)]
        first.kill()
        first.wait()
        run(bench, 3)
    assert agrees(bench, database, 3)
    (aside,) = names(database) - {"bench"}
    assert kept(database, aside) == theirs
    assert f"kept there as the study {aside!r}" in caplog.text


def end_all_sessions(database: Database) -> None:
    with database.connection() as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def write_down_another(url: str) -> None:
    optuna.load_study(study_name="bench", storage=url).set_user_attr("sweep", asdict(ANOTHER))


def test_a_sweep_that_lost_its_study_to_another_stops(bench: Bench, database: Database) -> None:
    """The way to the server was gone for long, and another sweep has begun meanwhile."""
    engine, claims = create_engine(database.url()), []

    def take() -> None:
        end_all_sessions(database)
        claims.append(StudyClaim.take(engine, "bench", lambda: None, ANOTHER, "there"))
        write_down_another(database.url())

    try:
        with pytest.raises(UserError, match=r"writes the study 'bench'.*process 4711 on otherhost"):
            run(bench, 5, at(2, take))
    finally:
        engine.dispose()
    assert len(bench.study.journal.read()) == 3


def test_a_sweep_whose_study_another_has_written_meanwhile_stops(
    bench: Bench, database: Database
) -> None:
    def take_and_end() -> None:
        write_down_another(database.url())
        end_all_sessions(database)

    with pytest.raises(UserError, match=r"taken over .*process 4711 on otherhost.*/data/other"):
        run(bench, 5, at(2, take_and_end))
    assert len(bench.study.journal.read()) == 3


@pytest.mark.parametrize("secret", ["50% a@b:c/d?#{x} +&=", "秘密ü%41", "'\"\\ "])
def test_any_password_and_user_will_do(
    database: Database, tmp_path: Path, space: LegalSpace, secret: str
) -> None:
    user = f"user {secret}"[:60]
    with database.connection() as connection:
        who = sql.Identifier(user)
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN SUPERUSER PASSWORD {}").format(who, sql.Literal(secret))
        )
    try:
        bench = new_bench(tmp_path / "mine", space, database.url(user, secret))
        run(bench, 2)
        assert agrees(bench, database, 2)
    finally:
        with database.connection() as connection:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(who))
            connection.execute(sql.SQL("DROP ROLE {}").format(who))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"password": "sesame"}, 'password authentication failed for user "autotune"'),
        ({"database": "nope"}, 'database "nope" does not exist'),
        ({"username": "nobody"}, 'password authentication failed for user "nobody"'),
    ],
)
def test_what_the_server_refuses_is_said_in_a_line(
    server: Server, tmp_path: Path, space: LegalSpace, wrong: dict[str, str], reason: str
) -> None:
    url = server.url.set(**wrong).render_as_string(hide_password=False)
    before = time.monotonic()
    with pytest.raises(UserError) as refused:
        run(new_bench(tmp_path / "mine", space, url), 2)
    message = str(refused.value)
    assert refused.value.exit_code == 2
    assert reason in message
    assert "study.storage" in message
    assert "\n" not in message
    assert "sesame" not in message
    assert time.monotonic() - before < 3, "a person waits"


def test_results_move_from_the_server_to_a_file_and_back(
    bench: Bench, database: Database, caplog
) -> None:
    """`study.storage` may change between two starts, as where a server is given up."""
    run(bench, 3)
    url, bench.storage = bench.storage, None
    run(bench, 5)
    in_file = optuna.load_study(study_name="bench", storage=f"sqlite:///{bench.paths.database}")
    assert [trial.state.name for trial in in_file.trials] == ["COMPLETE"] * 5
    bench.storage = url
    with caplog.at_level(logging.WARNING):
        run(bench, 6)
    assert agrees(bench, database, 6)
    assert "lacked 2 results" in caplog.text
