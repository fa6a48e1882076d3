"""A machine that changes is noticed by the baseline's own runs."""

from __future__ import annotations

import random

import pytest

from autotune.certify.drift import Control, Drift
from autotune.certify.standing import drift_of
from autotune.measure.outcome import Outcome, Status
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord


def controls(*times_s: float) -> tuple[Control, ...]:
    return tuple(Control(100.0 * n, time) for n, time in enumerate(times_s))


def test_one_run_tells_nothing() -> None:
    drift = Drift(controls(1.0), 0.01)
    assert (drift.factor(50.0), drift.is_notable) == (1.0, False)


def test_a_drift_beyond_the_noise_is_taken_out_and_named() -> None:
    drift = Drift(controls(1.0, 1.025, 1.05), 0.005)
    assert drift.factor(0.0) == 1.0
    assert drift.factor(200.0) == pytest.approx(1.05, rel=0.01)
    assert drift.factor(150.0) == pytest.approx(1.0375, rel=0.01)
    assert drift.factor(1e9) == drift.factor(200.0)
    assert drift.is_notable
    assert drift.change == pytest.approx(0.05)


def test_what_runs_usually_differ_by_is_no_drift() -> None:
    draw = random.Random(0)
    named = taken_out = 0
    for _ in range(300):
        drift = Drift(controls(*(draw.gauss(1.0, 0.02) for _ in range(4))), 0.02)
        named += drift.is_notable
        taken_out += abs(drift.factor(150.0) - 1) > 0.03
    assert named / 300 < 0.15
    assert taken_out / 300 < 0.10


def test_a_slow_but_steady_drift_is_named_even_if_each_difference_is_small() -> None:
    assert Drift(controls(1.0, 1.012, 1.027, 1.041), 0.02).is_notable


def test_disturbed_controls_are_no_drift_even_if_they_are_most() -> None:
    drift = Drift(controls(1.3, 1.0, 1.3), 0.01)
    assert [drift.factor(at) for at in (0.0, 100.0, 200.0)] == [1.0, 1.0, 1.0]


def test_a_disturbed_control_is_no_drift() -> None:
    drift = Drift(controls(1.0, 1.3, 1.0, 1.01), 0.01)
    assert drift.factor(100.0) == pytest.approx(1.0, abs=0.01)
    assert not drift.is_notable


@pytest.mark.parametrize("odd", [1e300, -1e300, -1e11])
def test_a_run_at_no_moment_is_no_control(odd: float) -> None:
    """A line of `trials.jsonl` that was damaged; a trend over such numbers would overflow."""
    points = Point({"a": 1})
    moments = [0.0, 100.0, odd, 200.0, odd, 300.0]
    runs = [
        TrialRecord(n, points, Outcome(Status.OK, "measured", 1.0 + n / 1e4), 9.0, at, at, 1, "f")
        for n, at in enumerate(moments)
    ]
    drift = drift_of(runs, [], points, 0.02)
    assert [control.at for control in drift.controls] == [0.0, 100.0, 200.0, 300.0]
    assert not drift.is_notable
