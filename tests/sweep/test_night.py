"""A night on 64 nodes of 8 NPUs, on a virtual clock, with all that goes wrong in one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import verdict_of
from autotune.measure.outcome import Status
from autotune.ports import EndKind, RankExit, TrialRequest
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from autotune.sweep.loop import SweepEnd
from launch.simulated import FIRST_MOMENT, SimulatedTrial

from .conftest import RANKS, Bench

SLOTS = 64 // 4  # trials of 4 nodes of 8 NPUs
HOURS = 12.0
START = {"event": "start"}


@pytest.fixture(scope="module")
def space() -> LegalSpace:
    parameters = {
        name: {"choices": list(range(1, 9)), "ordered": True} for name in ("a", "b", "c", "d")
    }
    return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, {}))


def time_of(point: Point) -> float:
    """Seconds a batch, from 10 to 20; the fastest is (8, 8, 8, 8)."""
    return 10.0 + sum(8 - int(point[name]) for name in "abcd") / 2.8


def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
    """Twenty minutes a trial, give or take; one in eight comes to nothing.

    Memory is a property of the point, all else is bad luck.
    """
    luck = random.Random(f"{request.trial} {request.attempt}")
    fate, noise = luck.random(), luck.gauss(1.0, 0.01)
    starts_s = luck.uniform(300.0, 900.0)
    if fate < 0.04:
        return SimulatedTrial(starts_s, [[START]], EndKind.LOST, "the node is gone")
    if fate < 0.07:
        limit_s = starts_s + 1800.0
        return SimulatedTrial(limit_s, [[START]] * RANKS, EndKind.HUNG, "no step for 1800 s")
    if random.Random(point.key).random() < 0.05 and point["a"] > 1:
        error = {"event": "error", "kind": "oom", "message": "NPU out of memory"}
        exits = (RankExit(0, 1), RankExit(1, 1))
        return SimulatedTrial(starts_s, [[START, error]] * RANKS, EndKind.RANK_FAILED, "", exits)
    time_s = time_of(point) * noise
    steps = [
        {"event": "step", "step": n, "time_s": time_s, "samples": 8, "peak_reserved_bytes": 500}
        for n in range(5)
    ]
    ranks = [[START, *steps, {"event": "end"}]] * RANKS
    return SimulatedTrial(starts_s + 50 * time_s, ranks)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, space: LegalSpace) -> Bench:
    bench = Bench(
        StudyPaths(Path(tmp_path_factory.mktemp("night")) / "bench"),
        space,
        certify=CertifySettings(),
        control_every=12,
        tick_s=20.0,
    )
    end = bench.run(behave, SLOTS, "random", max_trials=100_000, max_hours=HOURS)
    assert end is SweepEnd.TIME_USED
    return bench


def test_nodes_idle_less_than_a_twentieth_of_the_time(bench: Bench) -> None:
    assert bench.launcher is not None
    assert bench.study is not None
    runs = [*bench.records, *(repeat.record for repeat in bench.study.repeats)]
    busy_s = sum(run.ended_at - run.started_at for run in runs)
    given_up_s = sum(
        progress.now - trial.started_at
        for progress in bench.listener.moments[-1:]
        for trial in progress.running
    )
    whole_s = max(run.ended_at for run in runs) - FIRST_MOMENT
    assert len(bench.records) > 400
    share = (busy_s + given_up_s) / (SLOTS * whole_s)
    assert share > 0.95, f"busy for {share:.1%} of {whole_s:.0f} s"


def test_the_night_ends_in_time_with_a_certified_winner(bench: Bench) -> None:
    assert bench.launcher is not None
    assert bench.launcher.now() - FIRST_MOMENT <= HOURS * 3600
    best = bench.sweep.progress().best
    assert best is not None
    true_best_s = min(time_of(r.parameters) for r in bench.records if r.status is Status.OK)
    assert time_of(best.parameters) <= 1.02 * true_best_s  # runs differ by 1 %
    verdict = verdict_of(bench.sweep.bench.results)
    assert verdict is not None
    assert verdict.certified


def test_what_was_lost_was_repeated_and_held_against_no_point(bench: Bench) -> None:
    lost = [r for r in bench.records if r.status is Status.INFRASTRUCTURE]
    assert 8 < len(lost) < 60
    later = {r.parameters for r in bench.records if r.status is not Status.INFRASTRUCTURE}
    again = sum(record.parameters in later for record in lost)
    assert again > 0.8 * len(lost)  # those of the last minutes have no time left
    attempts = Counter(r.parameters for r in bench.records if r.status is not Status.INFRASTRUCTURE)
    assert max(attempts.values()) == 1
