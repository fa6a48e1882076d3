"""What Optuna is told: violations as constraints, crashes as failures, nothing else."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

import optuna
import pytest

from autotune.errors import UserError
from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import FixedPointSampler
from autotune.space.legal import LegalSpace
from autotune.study.storage import OptunaStore, slowest
from autotune.study.trial_record import GateNote, TrialRecord

LIMIT = 1000


def open_store(space: LegalSpace, folder: Path, records: list[TrialRecord]) -> OptunaStore:
    return OptunaStore.open("s", None, folder / "study.db", Encoding(space), LIMIT, records)


def tell(
    store: OptunaStore,
    number: int,
    outcome: Outcome,
    worst_s: float = 2.0,
    gate: GateNote | None = None,
) -> TrialRecord:
    point = store.encoding.space.points[number]
    asked, _ = store.ask(FixedPointSampler(store.encoding, point))
    record = TrialRecord(asked, point, outcome, 9, 0, 9, 1, "f", gate=gate)
    store.tell(record, worst_s)
    return record


def trial(store: OptunaStore, number: int) -> optuna.trial.FrozenTrial:
    return store.study.get_trials()[number]


def test_a_measurement_is_its_time_and_its_distance_from_the_limit(space, tmp_path) -> None:
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(Status.OK, "m", 0.5, None, 8, peak_memory_bytes=900))
    assert trial(store, 0).state.name == "COMPLETE"
    assert trial(store, 0).value == 0.5
    assert trial(store, 0).constraints == {"memory": pytest.approx(-0.1)}


def test_over_the_limit_is_its_time_and_a_violation(space, tmp_path) -> None:
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(Status.OVER_LIMIT, "m", 0.5, None, 8, peak_memory_bytes=1100))
    assert trial(store, 0).value == 0.5
    assert trial(store, 0).constraints == {"memory": pytest.approx(0.1)}


@pytest.mark.parametrize("peak", [None, 0, 900, 1500])
def test_out_of_memory_is_a_violation_and_never_a_failure(space, tmp_path, peak) -> None:
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(Status.OOM, "m", peak_memory_bytes=peak), worst_s=3.0)
    assert trial(store, 0).state.name == "COMPLETE"
    assert trial(store, 0).value == 3.0
    assert trial(store, 0).constraints["memory"] > 0


@pytest.mark.parametrize(("predicted", "overshoot"), [(1250, 0.25), (None, 1e-3), (990, 1e-3)])
def test_what_the_gate_refused_is_pruned_with_the_predicted_violation(
    space, tmp_path, predicted: int | None, overshoot: float
) -> None:
    """Told as failed it would teach samplers nothing, told as complete it would be a result."""
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(Status.SKIPPED, "r"), gate=GateNote(0.01, predicted))
    assert trial(store, 0).state.name == "PRUNED"
    assert trial(store, 0).constraints == {"memory": pytest.approx(overshoot)}


@pytest.mark.parametrize("status", [Status.FAILED, Status.HUNG, Status.INFRASTRUCTURE])
def test_a_crash_is_a_failure_with_its_cause(space, tmp_path, status) -> None:
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(status, "rank 1: KeyError"))
    assert trial(store, 0).state.name == "FAIL"
    assert trial(store, 0).user_attrs["reason"] == "rank 1: KeyError"


def test_optunas_own_best_is_feasible(space, tmp_path) -> None:
    store = open_store(space, tmp_path, [])
    tell(store, 0, Outcome(Status.OVER_LIMIT, "m", 0.1, None, 8, peak_memory_bytes=1100))
    tell(store, 1, Outcome(Status.OK, "m", 0.5, None, 8, peak_memory_bytes=900))
    tell(store, 2, Outcome(Status.OOM, "m"))
    assert store.study.best_trial.number == 1


def test_a_database_written_again_says_the_same(space, tmp_path) -> None:
    store = open_store(space, tmp_path, [])
    records = [
        tell(store, 0, Outcome(Status.OK, "m", 0.5, None, 8, peak_memory_bytes=900)),
        tell(store, 1, Outcome(Status.OOM, "m")),
        tell(store, 2, Outcome(Status.FAILED, "m")),
        tell(store, 3, Outcome(Status.SKIPPED, "m"), gate=GateNote(0.01, 1250)),
    ]
    before = [(t.state, t.params, t.user_attrs, set(t.constraints)) for t in store.study.trials]
    (tmp_path / "study.db").unlink()
    again = open_store(space, tmp_path, records)
    after = [(t.state, t.params, t.user_attrs, set(t.constraints)) for t in again.study.trials]
    assert after == before


def test_another_programs_lock_is_waited_for(space, tmp_path) -> None:
    store = open_store(space, tmp_path, [])
    locked = threading.Event()

    def hold() -> None:
        connection = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        locked.set()
        time.sleep(2)
        connection.execute("ROLLBACK")
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    tell(store, 0, Outcome(Status.OK, "m", 0.5, None, 8, peak_memory_bytes=900))
    holder.join()
    assert trial(store, 0).value == 0.5


def test_a_wrong_url_is_named(space, tmp_path) -> None:
    for url in ("nonsense", "nosuch://db", "postgresql://127.0.0.1:1/none"):
        with pytest.raises(UserError, match="cannot open the study database"):
            OptunaStore.open("s", url, tmp_path / "study.db", Encoding(space), LIMIT, [])


def test_slowest_of_nothing_is_a_second() -> None:
    assert slowest([]) == 1.0


def test_optuna_does_not_talk_over_the_view(space, tmp_path, caplog) -> None:
    with caplog.at_level(logging.INFO):
        store = open_store(space, tmp_path, [])
        tell(store, 0, Outcome(Status.OK, "m", 0.5, None, 8, peak_memory_bytes=900))
    assert [r for r in caplog.records if r.name.startswith("optuna")] == []
