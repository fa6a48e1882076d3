"""What measured times say about other points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History, of_times
from autotune.search.guided.time_model import TimeModel, fit_time, model_time
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of({"size": ladder(6), "kind": kinds(4), "depth": ladder(5)})
GEOMETRY = Geometry.of(SPACE.parameters)
BLIND = Knowledge()


def seconds_of(rows: Codes) -> Floats:
    """Fast in the middle of the sizes; kinds and depths have effects of their own."""
    size, kind, depth = rows.T
    kinds_effect = np.array([0.0, 0.25, 0.1, 0.4])[kind]
    return np.asarray(np.exp(0.08 * (size - 3.0) ** 2 + kinds_effect + 0.1 * depth))


def measured(count: int, seed: int = 0, factor: float = 1.0) -> History:
    generator = np.random.default_rng(seed)
    rows = SPACE.codes[generator.permutation(len(SPACE.codes))[:count]]
    return of_times(rows, factor * seconds_of(rows))


def model(history: History, knowledge: Knowledge = BLIND) -> TimeModel:
    found = model_time(fit_time(GEOMETRY, history, knowledge), history, knowledge)
    assert found is not None
    return found


def test_without_a_time_there_is_no_model() -> None:
    nothing = of_times(SPACE.codes[:2], np.full(2, np.nan))
    assert model_time(fit_time(GEOMETRY, nothing, BLIND), nothing, BLIND) is None


def test_points_that_were_not_measured_are_ranked() -> None:
    """From a quarter of the points the fast ones of the rest are told from the slow ones."""
    history = measured(30)
    measured_rows = {row.tobytes() for row in history.rows}
    others = SPACE.codes[[row.tobytes() not in measured_rows for row in SPACE.codes]]
    mean, _ = model(history).predict(others)
    faster = seconds_of(others[np.argsort(mean)[:10]])
    assert np.sort(faster)[-1] < np.quantile(seconds_of(others), 0.2)


def test_a_measured_point_is_known_and_others_are_doubtful() -> None:
    history = measured(20)
    found = model(history)
    mean, deviation = found.predict(history.rows)
    fast = history.seconds < np.median(history.seconds)
    assert mean[fast] == pytest.approx(np.log(history.seconds[fast]), abs=0.05)
    _, elsewhere = found.predict(SPACE.codes)
    assert deviation.max() < np.quantile(elsewhere, 0.75)


def test_the_unit_of_time_makes_no_difference() -> None:
    here, there = model(measured(25)), model(measured(25, factor=1000.0))
    mean, deviation = here.predict(SPACE.codes)
    other_mean, other_deviation = there.predict(SPACE.codes)
    assert other_mean == pytest.approx(mean + np.log(1000), abs=1e-3)
    assert other_deviation == pytest.approx(deviation, abs=1e-3)


def test_a_rough_time_tells_less() -> None:
    history = measured(6)
    rough = replace(history, rough=np.arange(6) == 2)
    fitted = fit_time(GEOMETRY, history, BLIND)
    row = history.rows[2:3]
    exact, vague = (model_time(fitted, told, BLIND) for told in (history, rough))
    assert exact is not None
    assert vague is not None
    assert vague.predict(row)[1][0] > 1.5 * exact.predict(row)[1][0]


def test_what_runs_now_is_no_longer_doubtful_and_changes_no_mean() -> None:
    history = measured(15)
    running = SPACE.codes[[3, 70]]
    fitted = fit_time(GEOMETRY, history, BLIND)
    alone = model_time(fitted, history, BLIND)
    beside = model_time(fitted, replace(history, pending=running), BLIND)
    assert alone is not None
    assert beside is not None
    mean, deviation = alone.predict(SPACE.codes)
    mean_beside, deviation_beside = beside.predict(SPACE.codes)
    assert mean_beside == pytest.approx(mean, abs=1e-4)
    assert (deviation_beside <= deviation + 1e-9).all()
    assert (deviation_beside[[3, 70]] < 0.8 * deviation[[3, 70]]).all()


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_equal_times_are_a_model_too(count: int) -> None:
    history = of_times(SPACE.codes[:count], np.full(count, 2.5))
    mean, deviation = model(history).predict(SPACE.codes)
    assert mean == pytest.approx(np.full(len(mean), np.log(2.5)), abs=1e-3)
    assert (deviation > 0).all()


def test_of_many_runs_the_fastest_still_count() -> None:
    """With more runs than a model takes, the best of them are among those it takes."""
    space = space_of({name: ladder(6) for name in "abcd"})
    rows = np.random.default_rng(0).permutation(space.codes)[:900]
    seconds = np.exp(0.1 * ((rows - 2.5) ** 2).sum(axis=1))
    geometry, history = Geometry.of(space.parameters), of_times(rows, seconds)
    found = model_time(fit_time(geometry, history, BLIND), history, BLIND)
    assert found is not None
    best = np.argsort(seconds)[:20]
    mean, _ = found.predict(rows[best])
    assert mean == pytest.approx(np.log(seconds[best]), abs=0.05)


class _Silent:
    """A belief that has no answer."""

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        return None

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        return None


class _Oracle(_Silent):
    """A belief that knows the times."""

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        return np.log(seconds_of(rows))


def test_what_is_believed_is_expected_where_nothing_was_measured() -> None:
    history = measured(4)
    blind, (told, _) = (
        model(history),
        model(history, Knowledge(None, _Oracle())).predict(SPACE.codes),
    )
    truth = np.log(seconds_of(SPACE.codes))
    fast = truth < np.median(truth)
    missed = np.abs(told - truth)[fast].mean()
    assert missed < 0.3 * np.abs(blind.predict(SPACE.codes)[0] - truth)[fast].mean()


def test_a_belief_without_an_answer_is_none() -> None:
    history = measured(8)
    blind, told = model(history), model(history, Knowledge(None, _Silent()))
    for expected, found in zip(blind.predict(SPACE.codes), told.predict(SPACE.codes), strict=True):
        assert found == pytest.approx(expected)
