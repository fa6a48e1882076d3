"""A sweep that is killed loses nothing that had finished."""

from __future__ import annotations

import json
from dataclasses import replace

import optuna
import pytest

from autotune.errors import UserError
from autotune.ports import TrialRequest
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from launch.simulated import SimulatedTrial

from .conftest import Bench, measured, peak_of, time_of


class KilledError(Exception):
    """Stands for a kill: nothing of the sweep runs after it."""


def kill_at(trial: int):
    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial == trial:
            raise KilledError
        return measured(point)

    return behave


def states(bench: Bench) -> list[str]:
    study = optuna.load_study(study_name="bench", storage=f"sqlite:///{bench.paths.database}")
    return [trial.state.name for trial in study.trials]


def test_a_running_trial_is_closed_with_its_reason_and_its_point_is_tried_again(
    bench: Bench,
) -> None:
    with pytest.raises(KilledError):
        bench.run(kill_at(4), max_trials=8)
    before = bench.paths.journal.read_bytes()
    bench.run(max_trials=8)
    assert bench.paths.journal.read_bytes().startswith(before)
    assert len(bench.records) == 8
    assert "RUNNING" not in states(bench)
    study = optuna.load_study(study_name="bench", storage=f"sqlite:///{bench.paths.database}")
    assert study.trials[4].state.name == "FAIL"
    assert "killed" in study.trials[4].user_attrs["reason"]
    assert study.trials[4].params == study.trials[5].params


@pytest.mark.parametrize("killed", range(8))
def test_the_end_is_that_of_an_unbroken_run(bench: Bench, tmp_path, space, killed: int) -> None:
    unbroken = Bench(StudyPaths(tmp_path / "unbroken"), space)
    unbroken.run(max_trials=8)
    with pytest.raises(KilledError):
        bench.run(kill_at(killed), max_trials=8)
    bench.run(max_trials=8)
    assert [r.parameters for r in bench.records] == [r.parameters for r in unbroken.records]


def test_a_study_without_its_database_goes_on(bench: Bench) -> None:
    bench.run(max_trials=5)
    before = bench.paths.journal.read_bytes()
    bench.paths.database.unlink()
    bench.run(max_trials=8)
    assert bench.paths.journal.read_bytes().startswith(before)
    assert len(states(bench)) == 8


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_broken_database_is_put_aside_and_written_again(bench: Bench, content: bytes) -> None:
    bench.run(max_trials=5)
    bench.paths.database.write_bytes(content)
    bench.run(max_trials=8)
    assert len(states(bench)) == 8
    aside = list(bench.paths.root.glob("study.db.broken-*"))
    assert [path.read_bytes() for path in aside] == [content]


def test_a_result_that_the_database_missed_is_told_to_it(bench: Bench) -> None:
    """A kill between journal and database: the journal is right."""
    with pytest.raises(KilledError):
        bench.run(kill_at(4), max_trials=8)
    with bench.paths.journal.open("rb") as file:
        last = file.read().splitlines()[-1]
    study = optuna.load_study(study_name="bench", storage=f"sqlite:///{bench.paths.database}")
    params = bench.study.encoding.decode(study.trials[4].params)
    entry = {**json.loads(last), "trial": 4, "parameters": dict(params)}
    with bench.paths.journal.open("ab") as file:
        file.write(json.dumps(entry).encode() + b"\n")
    bench.run(max_trials=5)
    assert states(bench) == ["COMPLETE"] * 5


def test_a_number_that_comes_again_has_none_of_the_old_records(bench: Bench) -> None:
    """The database is lost with a running trial: its number is given again."""
    with pytest.raises(KilledError):
        bench.run(kill_at(2), max_trials=4)
    stale = bench.paths.trial(2) / "rank0.jsonl"
    stale.write_text('{"event": "step", "step": 0, "time_s": 99.0, "peak_reserved_bytes": 999}\n')
    bench.paths.database.unlink()
    bench.run(max_trials=4)
    again = next(record for record in bench.records if record.trial == 2)
    assert again.outcome.batch_time_s == pytest.approx(time_of(again.parameters))
    assert again.outcome.peak_memory_bytes == peak_of(again.parameters)


def test_results_that_are_taken_over_are_kept_at_once(bench: Bench, tmp_path, space) -> None:
    bench.run(max_trials=3)
    taken = [replace(r, taken_from={"study": "old", "trial": r.trial}) for r in bench.records]
    new = Bench(StudyPaths(tmp_path / "new"), space)
    new.open().take_over(taken)
    new.run(max_trials=2)
    assert [r.taken_from is not None for r in new.records] == [True] * 3 + [False] * 2
    assert new.records[:3] == taken


def test_another_environment_is_refused_with_both_values(bench: Bench) -> None:
    bench.run(max_trials=2)
    before = {path: path.read_bytes() for path in bench.paths.root.glob("*.*")}
    with pytest.raises(UserError) as refused:
        bench.open({"torch": "2.14"})
    message = str(refused.value)
    assert "environment.torch: was 2.13, is now 2.14" in message
    assert f"study.dir=NEW_FOLDER study.take_over={bench.paths.root}" in message
    assert {path: path.read_bytes() for path in bench.paths.root.glob("*.*")} == before


def test_results_without_a_configuration_are_not_guessed_at(bench: Bench) -> None:
    bench.run(max_trials=2)
    bench.paths.config.unlink()
    with pytest.raises(UserError, match=r"no config\.yaml"):
        bench.open()
