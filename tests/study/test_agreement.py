"""What a study's trials are when journal and database do not say the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import FixedPointSampler
from autotune.space.legal import LegalSpace
from autotune.study.agreement import lack_of, strangers, trials_of
from autotune.study.storage import OptunaStore
from autotune.study.told import as_trial, interruption, is_interrupted
from autotune.study.trial_record import TrialRecord

LIMIT = 1000


@pytest.fixture
def encoding(space: LegalSpace) -> Encoding:
    return Encoding(space)


def record(encoding: Encoding, number: int, time_s: float = 0.5) -> TrialRecord:
    outcome = Outcome(Status.OK, "m", time_s, None, 8, peak_memory_bytes=900)
    return TrialRecord(number, encoding.space.points[number], outcome, 9, 0, 9, 1, "f")


def finished(encoding: Encoding, number: int, time_s: float = 0.5) -> FrozenTrial:
    """As the database has it."""
    trial = as_trial(record(encoding, number, time_s), encoding, LIMIT, 1.0)
    trial.number, trial._trial_id = number, 100 + number
    return trial


def open_(encoding: Encoding, number: int, state: TrialState = TrialState.RUNNING) -> FrozenTrial:
    params = encoding.encode(encoding.space.points[number])
    distributions = {name: encoding.distributions[name] for name in params}
    ended = interruption("stopped by the user") if state is TrialState.FAIL else {}
    trial = create_trial(
        state=state, params=params, distributions=distributions, user_attrs=dict(ended)
    )
    trial.number, trial._trial_id = number, 100 + number
    return trial


def trials(
    encoding: Encoding, records: list[TrialRecord], found: list[FrozenTrial]
) -> list[FrozenTrial]:
    return trials_of(records, found, encoding, LIMIT)


def test_a_trial_that_ran_when_a_sweep_was_killed_keeps_its_point(encoding: Encoding) -> None:
    found = [finished(encoding, 0), open_(encoding, 1), open_(encoding, 2, TrialState.FAIL)]
    both = trials(encoding, [record(encoding, 0)], found)
    assert [trial.state.name for trial in both] == ["COMPLETE", "FAIL", "FAIL"]
    assert [is_interrupted(trial) for trial in both] == [False, True, True]
    assert [trial.params for trial in both] == [trial.params for trial in found]
    assert "killed" in both[1].user_attrs["reason"]
    assert both[2].user_attrs["reason"] == "stopped by the user"


def test_what_the_journal_says_counts(encoding: Encoding) -> None:
    told_otherwise = [finished(encoding, 0, time_s=9.0), open_(encoding, 1)]
    both = trials(encoding, [record(encoding, 0), record(encoding, 1)], told_otherwise)
    assert [(trial.state.name, trial.value) for trial in both] == [("COMPLETE", 0.5)] * 2


def test_numbers_are_those_of_the_journal(encoding: Encoding) -> None:
    both = trials(encoding, [record(encoding, 2), record(encoding, 0)], [])
    assert [trial.value for trial in both] == [0.5, None, 0.5]
    assert is_interrupted(both[1])
    assert not both[1].params


def test_a_point_of_another_space_is_none(encoding: Encoding) -> None:
    trial = open_(encoding, 0)
    trial.params = {**trial.params, "micro_batch_size": 77}
    assert trials(encoding, [], [trial])[0].params == {}
    trial.params = {"colour": 1}
    assert trials(encoding, [], [trial])[0].params == {}


def test_what_the_database_lacks_is_found(encoding: Encoding) -> None:
    wanted = [finished(encoding, number) for number in range(3)]
    lack = lack_of([finished(encoding, 0), open_(encoding, 1)], wanted)
    assert lack is not None
    assert lack.finish == ((101, wanted[1]),)
    assert lack.add == (wanted[2],)
    still_running = [finished(encoding, 0), open_(encoding, 1)]
    nothing = lack_of(still_running, still_running)
    assert nothing is not None
    assert (nothing.finish, nothing.add) == ((), ())


def test_a_database_that_says_something_else_is_written_again(encoding: Encoding) -> None:
    wanted = [finished(encoding, 0), finished(encoding, 1)]
    elsewhere = finished(encoding, 2)
    elsewhere.number = 1
    other_point = open_(encoding, 2)
    other_point.number = 1
    for found in (
        [finished(encoding, 0), finished(encoding, 1, time_s=9.0)],  # another value
        [finished(encoding, 0), elsewhere],  # another point
        [finished(encoding, 0), other_point],  # another point that runs
        [finished(encoding, 1)],  # numbers that do not begin with 0
        [*wanted, finished(encoding, 2)],  # more than there is
    ):
        assert lack_of(found, wanted) is None


def test_results_of_others_are_told_from_ours(encoding: Encoding) -> None:
    records = [record(encoding, 0), record(encoding, 1)]
    ours = [finished(encoding, 0), open_(encoding, 1), open_(encoding, 2, TrialState.FAIL)]
    assert strangers(records, ours, encoding) == []
    theirs = [finished(encoding, 0), finished(encoding, 1, time_s=9.0), finished(encoding, 2)]
    assert strangers(records, theirs, encoding) == [1, 2]


def test_a_stand_in_for_a_time_is_no_disagreement(encoding: Encoding) -> None:
    """It is the slowest time of the moment, which later trials may exceed."""
    out_of_memory = replace(record(encoding, 0), outcome=Outcome(Status.OOM, "m"))
    told = as_trial(out_of_memory, encoding, LIMIT, 3.0)
    told.number, told._trial_id = 0, 100
    slow = record(encoding, 1, time_s=8.0)
    assert strangers([out_of_memory, slow], [told], encoding) == []
    assert trials(encoding, [out_of_memory, slow], [told])[0].value == 3.0


def test_the_points_of_a_killed_sweep_come_again(encoding: Encoding, tmp_path: Path) -> None:
    def opened(records: list[TrialRecord]) -> OptunaStore:
        return OptunaStore.open("s", None, tmp_path / "study.db", encoding, LIMIT, records)

    store = opened([])
    for point in encoding.space.points[:3]:
        store.ask(FixedPointSampler(encoding, point))
    store.tell(record(encoding, 1), 1.0)
    again = opened([record(encoding, 1)])
    points = encoding.space.points
    assert again.interrupted() == [(0, points[0]), (2, points[2])]
    assert again.ask(FixedPointSampler(encoding, points[3])) == (3, points[3])
