"""What the trials of a study say, by their status or by what Optuna knows of them."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.guided.history import History, HistoryReader
from autotune.search.point_sampler import INTERRUPTED_ATTRIBUTE
from autotune.space.point import Point
from tests.search.guided.planted import (
    Sweep,
    failed,
    guided,
    kinds,
    ladder,
    ok,
    oom,
    over_limit,
    space_of,
    stopped,
)

SPACE = space_of({"size": ladder(4), "kind": kinds(3), "depth": ladder(3, when="size > 1")})
ENCODING = Encoding(SPACE)


def told(outcome: Outcome) -> History:
    """The history of one trial of this program's own."""
    sweep = Sweep(SPACE, lambda _: outcome, limit_bytes=100)
    sweep.run(guided(SPACE), 1)
    return HistoryReader(ENCODING).read(sweep.store.study.get_trials())


@pytest.mark.parametrize(
    ("outcome", "seconds", "peak", "usable", "out_of_memory", "rough"),
    [
        (ok(2.0, 80), 2.0, 80, True, False, False),
        (ok(2.0), 2.0, None, True, False, False),
        (stopped(3.0), 3.0, None, True, False, True),
        (over_limit(2.5, 130), 2.5, 130, False, True, False),
        (over_limit(None, 130), None, 130, False, True, False),
        (oom(), None, None, False, True, False),
        (failed(), None, None, False, False, False),
        (Outcome(Status.HUNG, "no step"), None, None, False, False, False),
    ],
    ids=["ok", "no peak", "stopped", "over", "over before a step", "oom", "failed", "hung"],
)
def test_every_status_tells_what_it_knows(
    outcome: Outcome,
    seconds: float | None,
    peak: float | None,
    usable: bool,
    out_of_memory: bool,
    rough: bool,
) -> None:
    history = told(outcome)
    assert len(history) == 1
    assert history.seconds == pytest.approx([math.nan if seconds is None else seconds], nan_ok=True)
    assert history.peaks == pytest.approx([math.nan if peak is None else peak], nan_ok=True)
    assert history.usable.tolist() == [usable]
    assert history.out_of_memory.tolist() == [out_of_memory]
    assert history.failed.tolist() == [not usable and not out_of_memory]
    assert history.rough.tolist() == [rough]


@pytest.mark.parametrize("status", [Status.INFRASTRUCTURE, Status.SKIPPED])
def test_what_did_not_run_tells_nothing(status: Status) -> None:
    assert len(told(Outcome(status, "gone"))) == 0


def frozen(point: Point, number: int = 0, **rest: Any) -> FrozenTrial:
    """A finished trial of anyone's Optuna study."""
    params = ENCODING.encode(point)
    distributions = {name: ENCODING.distributions[name] for name in params}
    trial = create_trial(params=params, distributions=distributions, **rest)
    trial.number = number
    return trial


@pytest.mark.parametrize(
    ("rest", "seconds", "usable", "out_of_memory"),
    [
        ({"value": 2.0}, 2.0, True, False),
        ({"value": 2.0, "constraints": {"memory": -0.1}}, 2.0, True, False),
        ({"value": 2.0, "constraints": {"memory": 0.0, "other": 0.2}}, 2.0, False, True),
        ({"state": TrialState.FAIL}, None, False, False),
    ],
    ids=["value", "within", "violated", "failed"],
)
def test_a_plain_study_is_understood(
    rest: dict[str, Any], seconds: float | None, usable: bool, out_of_memory: bool
) -> None:
    history = HistoryReader(ENCODING).read([frozen(SPACE.points[5], **rest)])
    assert history.rows.tolist() == [SPACE.codes[5].tolist()]
    assert history.seconds == pytest.approx([math.nan if seconds is None else seconds], nan_ok=True)
    assert history.usable.tolist() == [usable]
    assert history.out_of_memory.tolist() == [out_of_memory]


@pytest.mark.parametrize(
    "rest",
    [
        {"state": TrialState.PRUNED},
        {"state": TrialState.FAIL, "user_attrs": {INTERRUPTED_ATTRIBUTE: True}},
        {"value": 1.0, "user_attrs": {"status": "a status of a later version"}},
    ],
    ids=["pruned", "interrupted", "unknown"],
)
def test_what_tells_nothing_is_left_out(rest: dict[str, Any]) -> None:
    assert len(HistoryReader(ENCODING).read([frozen(SPACE.points[0], **rest)])) == 0


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf])
def test_a_value_that_is_no_time_is_none(value: float) -> None:
    history = HistoryReader(ENCODING).read([frozen(SPACE.points[0], value=value)])
    assert math.isnan(history.seconds[0])
    assert history.usable.all()


def test_runs_are_in_the_order_of_their_numbers() -> None:
    trials = [frozen(SPACE.points[n], number=n, value=1.0 + n) for n in range(6)]
    history = HistoryReader(ENCODING).read(reversed(trials))
    assert history.seconds.tolist() == [1, 2, 3, 4, 5, 6]
    assert history.rows.tolist() == SPACE.codes[:6].tolist()


def test_what_runs_now_is_pending_until_it_ends() -> None:
    sweep, sampler = Sweep(SPACE, lambda _: ok(2.0)), guided(SPACE)
    sweep.run(sampler, 2)
    number, point = sweep.ask(sampler)
    reader = HistoryReader(ENCODING)
    during = reader.read(sweep.store.study.get_trials())
    assert len(during) == 2
    assert [SPACE.decode(row) for row in during.pending] == [point]
    sweep.tell(number, point)
    after = reader.read(sweep.store.study.get_trials())
    assert (len(after), len(after.pending)) == (3, 0)


def test_a_better_known_time_replaces_the_first() -> None:
    trials = [frozen(SPACE.points[n], number=n, value=1.0 + n) for n in range(3)]
    reader = HistoryReader(ENCODING)
    better = {SPACE.codes[1].tobytes(): 1.7}
    assert reader.read(trials, better).seconds.tolist() == [1.0, 1.7, 3.0]
    assert reader.read(trials).seconds.tolist() == [1.0, 2.0, 3.0]


def test_the_first_runs_are_as_they_were() -> None:
    study = optuna.create_study()
    for number in range(5):
        study.add_trial(frozen(SPACE.points[number], value=1.0 + number))
    first = HistoryReader(ENCODING).read(study.get_trials()).first(3)
    assert first.seconds.tolist() == [1.0, 2.0, 3.0]
    assert (len(first.usable), len(first.peaks), len(first.pending)) == (3, 3, 0)
