"""Whole sweeps behind the memory gate, where every peak is known in closed form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.certify.results import Results, next_repeat
from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import verdict_of
from autotune.measure.outcome import Outcome, Status
from autotune.ports import TrialRequest
from autotune.report.gate import GateSummary
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord
from autotune.sweep.loop import SweepEnd, is_hopeless
from launch.simulated import SimulatedTrial

from .conftest import LIMIT, Bench
from .gated_case import (
    SPACE,
    VIOLATING,
    behave,
    gated,
    launched,
    make_space,
    peak_of,
    runs,
    skipped,
)

LAUNCHES = 26


@pytest.fixture(scope="module", params=["guided", "random", "tpe"])
def swept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A finished sweep by every kind of sampler."""
    bench = gated(tmp_path_factory.mktemp("swept") / request.param)
    assert bench.run(behave, sampler=request.param, max_trials=LAUNCHES) is SweepEnd.TRIALS_USED
    return bench


def test_the_space_is_what_is_said_of_it() -> None:
    assert sum(peak_of(p) > LIMIT for p in SPACE.points) == VIOLATING


def test_once_it_has_learned_only_checks_break_the_limit(swept: Bench) -> None:
    late = [r for r in launched(swept)[15:] if not r.was_checked]
    broke = [r for r in late if peak_of(r.parameters) > LIMIT]
    assert len(late) >= 8
    assert len(broke) <= 2
    for record in broke:  # just over it, and held to be possible
        assert record.gate is not None
        assert record.gate.fits is not None
        assert record.gate.fits >= 0.05
        assert peak_of(record.parameters) < 1.25 * LIMIT
    assert all(peak_of(r.parameters) > LIMIT for r in skipped(swept))


def test_a_small_share_of_the_refused_is_launched(swept: Bench) -> None:
    checks = sum(r.was_checked for r in launched(swept))
    refused = GateSummary.of(swept.records).avoided + checks
    assert 1 <= checks <= max(0.3 * refused, LAUNCHES / 10)


def test_as_many_launches_are_avoided_as_there_are_points_that_do_not_fit(swept: Bench) -> None:
    """Each counts once, however often it would have been proposed, and if it was not launched."""
    lost = {r.parameters for r in launched(swept) if peak_of(r.parameters) > LIMIT}
    assert 1 <= GateSummary.of(swept.records).avoided <= VIOLATING - len(lost)


def test_what_guided_avoids_is_what_it_would_have_lost(tmp_path: Path) -> None:
    """It keeps away from most of what does not fit by itself: that is none of the gate's merit."""
    with_gate, without = (gated(tmp_path / name) for name in ("gated", "open"))
    without.gate = False
    for bench in (with_gate, without):
        bench.run(behave, sampler="guided", max_trials=LAUNCHES)
    lost, lost_without = (
        sum(peak_of(r.parameters) > LIMIT for r in launched(bench))
        for bench in (with_gate, without)
    )
    summary = GateSummary.of(with_gate.records)
    assert lost - summary.checked + summary.avoided <= lost_without + 1


def test_far_fewer_launches_are_lost_than_without(swept: Bench) -> None:
    """Blind search loses as many as the share of the space that does not fit."""
    lost = sum(peak_of(r.parameters) > LIMIT for r in launched(swept))
    assert lost < 0.7 * LAUNCHES * VIOLATING / len(SPACE.points)


def test_a_skipped_trial_costs_nothing_and_counts_for_nothing(swept: Bench) -> None:
    assert len(launched(swept)) == LAUNCHES
    assert max(progress.finished for progress in swept.listener.moments) == LAUNCHES
    lines = [json.loads(line) for line in swept.paths.journal.read_text().splitlines()]
    kept = {line["trial"]: line for line in lines if line["status"] == "skipped"}
    assert swept.study is not None
    told = swept.study.optuna_study
    assert len(told.trials) == len(lines) == LAUNCHES + len(kept)
    for number, line in kept.items():
        assert line["cost_s"] == 0
        assert line["gate"]["checked"] is False
        assert line["gate"]["fits"] < 0.05
        assert line["gate"]["predicted_peak_bytes"] > LIMIT
        assert not swept.paths.trial(number).exists()
        assert told.trials[number].state.name == "PRUNED"
        overshoot = line["gate"]["predicted_peak_bytes"] / LIMIT - 1
        assert told.trials[number].constraints["memory"] == pytest.approx(overshoot)
    assert swept.sweep.progress().left_s == 0


def test_predictions_are_kept_beside_what_came_of_them(swept: Bench) -> None:
    for record in launched(swept)[18:]:
        assert record.gate is not None
        assert record.gate.predicted_peak_bytes is not None
    error = GateSummary.of(swept.records).median_error
    assert error is not None
    assert error < 0.15


def test_skipped_trials_change_nothing_of_what_is_certified() -> None:
    def record(number: int, status: Status, time_s: float | None, cost_s: float) -> TrialRecord:
        outcome = Outcome(status, "r", time_s, None, 8)
        return TrialRecord(number, Point({"n": number}), outcome, cost_s, number, number, 1, "f")

    near = [record(n, Status.OK, 1 + 0.001 * n, 10.0) for n in range(60)]
    many = [record(n, Status.SKIPPED, None, 0.0) for n in range(60, 360)]
    settings = CertifySettings()
    with_, without = (Results(r, (), Point({"n": 0}), settings) for r in (near + many, near))
    assert without.rechecks_left == 18  # that fit into 30 % of 60 trials of 10 s
    assert with_.rechecks_left == 18
    assert next_repeat(with_) == next_repeat(without)
    assert verdict_of(with_) == verdict_of(without)


def test_a_trial_of_the_guided_sampler_is_a_launch(tmp_path: Path) -> None:
    """It looks at the gate itself: what it passes over is no proposal of its."""
    bench = gated(tmp_path)
    bench.run(behave, sampler="guided", max_trials=LAUNCHES)
    assert [r.trial for r in bench.records] == list(range(LAUNCHES))
    assert skipped(bench) == []
    notes = [r.gate for r in bench.records if r.gate is not None]
    passed_over = [note.passed_over for note in notes if note.passed_over is not None]
    assert len(passed_over) > len(set(passed_over)) >= 1  # again and again, until one is checked
    assert all(peak_of(p) > LIMIT for p in passed_over)
    lines = [json.loads(line) for line in bench.paths.journal.read_text().splitlines()]
    told = [line["gate"]["passed_over"] for line in lines if line.get("gate")]
    assert [p for p in told if p] == [dict(p) for p in passed_over]


def test_a_point_is_refused_once(swept: Bench) -> None:
    points = [r.parameters for r in skipped(swept)]
    assert len(points) == len(set(points))


def test_several_at_once_keep_to_the_budget(tmp_path: Path) -> None:
    bench = gated(tmp_path)
    bench.run(behave, sampler="guided", slots=4, max_trials=12)
    assert len({r.parameters for r in launched(bench)}) == len(launched(bench)) == 12


def test_what_is_asked_for_is_launched_whatever_the_gate_says(tmp_path: Path) -> None:
    """The first proposals of an older study, or what was lost: nobody but a run may judge them."""
    bench = gated(tmp_path)
    bench.run(behave, sampler="random", max_trials=10)
    asked = skipped(bench)[0].parameters
    bench.first = [asked]
    bench.run(behave, sampler="random", max_trials=11)
    assert launched(bench)[-1].parameters == asked
    assert launched(bench)[-1].was_checked


def test_a_space_that_is_too_large_to_list(tmp_path: Path) -> None:
    batches = {"choices": [1, 2, 4, 8, 16], "ordered": True, "memory": "increases"}
    many = {f"p{n}": {"choices": list(range(6)), "ordered": True} for n in range(9)}
    space = make_space({"batch": batches, **many})
    assert not space.is_listed
    bench = gated(tmp_path, space)

    def by_batch(point: Point, request: TrialRequest) -> SimulatedTrial:
        return runs(1 / point["batch"], 300 * point["batch"])

    assert bench.run(by_batch, sampler="guided", max_trials=8) is SweepEnd.TRIALS_USED
    assert len(launched(bench)) == 8
    assert bench.sweep.progress().unseen == 5 * 6**9 - 8


def test_skipped_trials_hide_no_hopeless_start() -> None:
    def record(number: int, status: Status) -> TrialRecord:
        return TrialRecord(number, Point({"n": number}), Outcome(status, "r"), 1, 0, 1, 1, "f")

    records = [record(n, Status.FAILED) for n in range(5)]
    assert is_hopeless(records)
    assert is_hopeless([*records, record(5, Status.SKIPPED)])
