"""The loop: what is launched, what is kept, when it ends."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from autotune.measure.outcome import Status
from autotune.ports import EndKind, TrialRequest
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from autotune.sweep.loop import SweepEnd
from launch.simulated import FIRST_MOMENT, SimulatedTrial

from .conftest import LIMIT, Bench, measured, peak_of, time_of


def lost(reason: str = "the node is gone") -> SimulatedTrial:
    return SimulatedTrial(2.0, [], EndKind.LOST, reason)


def test_the_baseline_is_trial_0(bench: Bench) -> None:
    bench.run(max_trials=3)
    assert bench.records[0].trial == 0
    assert bench.records[0].parameters == bench.space.baseline


def test_a_used_up_space_ends_the_sweep_with_the_true_best(bench: Bench) -> None:
    assert bench.run(sampler="random", max_trials=1000) is SweepEnd.SPACE_USED
    assert Counter(r.parameters for r in bench.records) == Counter(bench.space.points)
    feasible = [p for p in bench.space.points if peak_of(p) <= LIMIT]
    best = bench.sweep.progress().best
    assert best is not None
    assert time_of(best.parameters) == min(map(time_of, feasible))
    for record in bench.records:
        wanted = Status.OK if peak_of(record.parameters) <= LIMIT else Status.OVER_LIMIT
        if peak_of(record.parameters) > 1500:
            wanted = Status.OOM
        assert record.status is wanted


def test_the_budget_counts_finished_trials_over_resumes(bench: Bench) -> None:
    assert bench.run(max_trials=4) is SweepEnd.TRIALS_USED
    assert bench.run(max_trials=4) is SweepEnd.TRIALS_USED
    assert len(bench.records) == 4
    bench.run(max_trials=6)
    assert [record.trial for record in bench.records] == list(range(6))


def test_a_resumed_study_goes_on_as_the_unbroken_one(bench: Bench, tmp_path, space) -> None:
    bench.run(max_trials=14)
    broken = Bench(StudyPaths(tmp_path / "broken"), space)
    for max_trials in (3, 9, 14):
        broken.run(max_trials=max_trials)
    assert [r.parameters for r in broken.records] == [r.parameters for r in bench.records]


def test_a_point_lost_to_the_infrastructure_is_tried_again_and_not_counted(bench: Bench) -> None:
    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        return lost() if request.trial == 2 else measured(point)

    bench.run(behave, max_trials=5)
    by_trial = {record.trial: record for record in bench.records}
    assert by_trial[2].status is Status.INFRASTRUCTURE
    again = [r for r in bench.records if r.parameters == by_trial[2].parameters]
    assert [(r.attempt, r.status.may_retry) for r in again] == [(1, True), (2, False)]
    assert sum(record.counts for record in bench.records) == 5


def test_a_point_that_is_lost_again_and_again_is_given_up(bench: Bench) -> None:
    unlucky = bench.space.points[7]

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        return lost() if point == unlucky else measured(point)

    assert (
        bench.run(behave, sampler="random", max_trials=1000, max_attempts=3) is SweepEnd.SPACE_USED
    )
    assert sum(r.parameters == unlucky for r in bench.records) == 3
    assert (
        bench.run(behave, sampler="random", max_trials=1000, max_attempts=3) is SweepEnd.SPACE_USED
    )
    assert sum(r.parameters == unlucky for r in bench.records) == 3


def test_a_failing_point_is_not_tried_again(bench: Bench) -> None:
    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial % 3 == 1:
            error = {"event": "error", "kind": "exception", "message": f"KeyError {request.trial}"}
            return SimulatedTrial(1.0, [[error]] * 2, EndKind.RANK_FAILED)
        return measured(point)

    bench.run(behave, sampler="random", max_trials=1000)
    assert max(Counter(r.parameters for r in bench.records).values()) == 1


def test_first_trials_without_memory_do_not_end_the_study(bench: Bench) -> None:
    """Samplers must live with nothing but out-of-memory errors at first."""

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial < 12:
            error = {"event": "error", "kind": "oom", "message": "no memory"}
            return SimulatedTrial(1.0, [[error]] * 2, EndKind.RANK_FAILED)
        return measured(point)

    bench.run(behave, max_trials=20)
    assert len(bench.records) == 20
    assert bench.sweep.progress().best is not None


def test_trials_that_all_fail_for_one_reason_end_the_sweep_early(bench: Bench) -> None:
    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        message = f"ImportError: no module, seen at 0x7f{request.trial:04x} after {request.trial} s"
        error = {"event": "error", "kind": "exception", "message": message}
        first = [[error], []] if request.trial % 2 else [[], [error]]
        return SimulatedTrial(1.0, first, EndKind.RANK_FAILED)

    assert bench.run(behave, max_trials=1000) is SweepEnd.HOPELESS
    assert len(bench.records) == 3


def test_a_baseline_that_hangs_is_not_hung_for_all_night(bench: Bench) -> None:
    """Each costs all of its deadlines."""

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        return SimulatedTrial(1800.0, [], EndKind.HUNG, f"no step of rank 0 in {request.trial} s")

    assert bench.run(behave, max_trials=1000) is SweepEnd.HOPELESS
    assert len(bench.records) == 2


def test_after_a_hopeless_start_the_same_command_tries_again(bench: Bench) -> None:
    """Whoever has mended the cause types it; of what failed nothing is repeated."""
    mended = False

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        error = {"event": "error", "kind": "exception", "message": "no data"}
        return measured(point) if mended else SimulatedTrial(1.0, [[error]], EndKind.RANK_FAILED)

    assert bench.run(behave, max_trials=10) is SweepEnd.HOPELESS
    assert bench.run(behave, max_trials=10) is SweepEnd.HOPELESS
    assert len(bench.records) == 6
    mended = True
    assert bench.run(behave, max_trials=10) is SweepEnd.TRIALS_USED
    assert [r.status for r in bench.records[6:]].count(Status.FAILED) == 0


def test_max_hours_ends_the_sweep_on_the_launchers_clock(bench: Bench) -> None:
    assert bench.run(max_trials=1000, max_hours=60 / 3600) is SweepEnd.TIME_USED
    assert bench.launcher is not None
    spent = sum(record.cost_s for record in bench.records)
    usual = statistics.median(record.cost_s for record in bench.records)
    assert 57 - 2 * usual < spent <= 57  # of a minute, 3 s are for the end
    assert bench.launcher.now() - FIRST_MOMENT <= 60


def test_max_hours_gives_up_a_trial_that_takes_longer_than_usual(bench: Bench) -> None:
    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        return SimulatedTrial(1000.0) if request.trial == 3 else measured(point)

    assert bench.run(behave, max_trials=1000, max_hours=60 / 3600) is SweepEnd.TIME_USED
    assert bench.launcher is not None
    assert bench.launcher.now() - FIRST_MOMENT <= 60
    assert [record.trial for record in bench.records] == [0, 1, 2]
    assert any("while trial 3 ran" in message for message in bench.listener.said_lines)
    given_up = bench.sweep.study.interrupted_points()
    assert len(given_up) == 1
    bench.run(max_trials=4)
    assert bench.records[3].parameters == given_up[0]


@pytest.mark.parametrize("slots", [3, 8])
def test_several_trials_at_once_are_different_points(bench: Bench, slots: int) -> None:
    assert bench.run(sampler="random", slots=slots, max_trials=1000) is SweepEnd.SPACE_USED
    assert max(Counter(r.parameters for r in bench.records).values()) == 1
    assert len(bench.records) == len(bench.space.points)
    busiest = max(len(progress.running) for progress in bench.listener.moments)
    assert busiest == slots


def test_several_at_once_keep_to_the_budget(bench: Bench) -> None:
    bench.run(slots=4, max_trials=10)
    assert len(bench.records) == 10


def test_a_person_is_told_how_long_it_takes(bench: Bench) -> None:
    bench.run(max_trials=10)
    halfway = next(p for p in bench.listener.moments if p.finished == 5 and p.left_s is not None)
    typical = sorted(record.cost_s for record in bench.records)[5]
    assert halfway.left_s == pytest.approx(5 * typical, rel=0.4)
    assert bench.listener.moments[-1].left_s == 0


def test_a_device_that_fails_is_held_against_the_device_of_its_rank(bench: Bench) -> None:
    """The text is CUDA's own, of the kind that a driver gives for faulty memory."""

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial != 2 or request.attempt > 1:
            return measured(point)
        text = "CUDA error: uncorrectable ECC error encountered"
        error = {"event": "error", "kind": "exception", "message": text}
        return SimulatedTrial(1.0, [[], [error]], EndKind.RANK_FAILED)

    bench.run(behave, max_trials=6)
    assert bench.launcher is not None
    assert bench.launcher.suspected == [(2, 1)]
    assert bench.records[2].status is Status.INFRASTRUCTURE
    assert bench.records[2].outcome.failure is not None
    assert bench.records[2].outcome.failure.rank == 1
    again = [r for r in bench.records if r.parameters == bench.records[2].parameters]
    assert [r.status.may_retry for r in again] == [True, False]
