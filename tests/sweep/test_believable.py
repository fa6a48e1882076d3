"""Whole sweeps on simulated devices: racing, control runs, certification, disturbed nights."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import Verdict, verdict_of
from autotune.measure.outcome import Status
from autotune.measure.racing import RaceRules
from autotune.ports import TrialRequest
from autotune.profile_plan import ProfilePlan
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from autotune.study.repeat import FIRST_LAUNCH, Role
from autotune.sweep.plan import ProfilePlans
from launch.simulated import FIRST_MOMENT, SimulatedTrial

from .conftest import LIMIT, RANKS, Bench, peak_of, time_of

STEPS = 40


@dataclass
class Machine:
    """Runs points with noise, and with whatever a test plants.

    slow_half: a point that is 30 % slower in every other of its runs, the first included.
    drift: by what share the machine is slower after the first 500 seconds. skipping: a
    point that does two thirds of its samples in two thirds of the time.
    """

    noise: float = 0.01
    slow_half: Point | None = None
    drift: float = 0.0
    skipping: Point | None = None
    admits_skipping: bool = True
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    runs: dict[Point, int] = field(default_factory=dict)
    bench: Bench | None = None

    def __call__(self, point: Point, request: TrialRequest) -> SimulatedTrial:
        run = self.runs.get(point, 0)
        self.runs[point] = run + 1
        time_s = time_of(point) * (1 + self.draw.gauss(0, self.noise))
        if point == self.slow_half and run % 2 == 0:
            time_s *= 1.3
        assert self.bench is not None
        assert self.bench.launcher is not None
        elapsed = self.bench.launcher.now() - FIRST_MOMENT
        time_s *= 1 + self.drift * min(elapsed / 500, 1.0)
        skips = point == self.skipping
        steps = [self.step(n, point, time_s * (2 / 3 if skips else 1), skips) for n in range(STEPS)]
        duration = 5.0 + sum(step["time_s"] for step in steps)
        records = [{"event": "start"}, *steps, {"event": "end"}]
        return SimulatedTrial(duration, [records] * RANKS)

    def step(self, number: int, point: Point, time_s: float, skips: bool) -> Mapping[str, Any]:
        loss = 4.0 * 0.97**number
        return {
            "event": "step",
            "step": number,
            "time_s": time_s * (1 + self.draw.gauss(0, self.noise)),
            "samples": 11 if skips and self.admits_skipping else 16,
            "loss": loss * (1.08 if skips else 1.0),
            "peak_reserved_bytes": peak_of(point),
        }


def sweep(bench: Bench, machine: Machine, race: bool = True) -> Verdict:
    """race: False runs every trial to its last step."""
    machine.bench = bench
    bench.race = RaceRules(8, 0.01 if race else 1e-9, race)
    bench.certify = CertifySettings()
    bench.control_every = 8
    bench.storage = "sqlite://"  # in memory: this is not about the database
    bench.run(machine, sampler="random", max_trials=1000)
    verdict = verdict_of(bench.sweep.bench.results)
    assert verdict is not None
    return verdict


def fastest(bench: Bench) -> Point:
    feasible = [point for point in bench.space.points if peak_of(point) <= LIMIT]
    return min(feasible, key=time_of)


def test_a_sweep_certifies_the_fastest_feasible_point(bench: Bench) -> None:
    verdict = sweep(bench, Machine())
    assert time_of(verdict.winner.point) == time_of(fastest(bench))
    assert verdict.certified
    assert verdict.gain is not None
    assert verdict.gain.ci95 is not None
    low, high = verdict.gain.ci95
    assert low < time_of(bench.space.baseline) / time_of(fastest(bench)) < high


def test_racing_takes_less_device_time_for_the_same_winner(bench: Bench, tmp_path, space) -> None:
    racing = sweep(bench, Machine())
    patient = Bench(StudyPaths(tmp_path / "patient"), space)
    whole = sweep(patient, Machine(), race=False)
    assert time_of(whole.winner.point) == time_of(racing.winner.point) == time_of(fastest(bench))
    stopped = [r for r in bench.records if r.status is Status.STOPPED]
    assert len(stopped) > len(bench.records) / 4
    racing_s, patient_s = (sum(r.cost_s for r in one.records) for one in (bench, patient))
    assert racing_s < 0.6 * patient_s
    for record in stopped:
        assert record.outcome.batch_time_s == pytest.approx(time_of(record.parameters), rel=0.05)


def test_a_stopped_trial_never_was_the_best(bench: Bench) -> None:
    sweep(bench, Machine())
    best = min(r.outcome.batch_time_s or 9 for r in bench.records if r.status is Status.OK)
    for record in bench.records:
        if record.status is Status.STOPPED:
            assert (record.outcome.batch_time_s or 0) > best


def test_slowness_in_half_of_the_winners_runs_does_not_change_it(bench: Bench) -> None:
    verdict = sweep(bench, Machine(slow_half=fastest(bench)))
    assert time_of(verdict.winner.point) == time_of(fastest(bench))
    assert verdict.winner.time.mean_s == pytest.approx(time_of(fastest(bench)), rel=0.03)


@pytest.mark.parametrize("drift", [0.05, -0.05])
def test_a_drifting_machine_does_not_change_the_winner_and_is_named(
    bench: Bench, drift: float
) -> None:
    verdict = sweep(bench, Machine(noise=0.003, drift=drift))
    assert time_of(verdict.winner.point) == time_of(fastest(bench))
    found = bench.sweep.bench.results.drift
    assert found.is_notable
    assert sum(repeat.role is Role.CONTROL for repeat in bench.study.repeats) >= 2  # type: ignore[union-attr]


@pytest.mark.parametrize("admits", [True, False], ids=["counted", "only in the losses"])
def test_a_point_that_skips_a_third_of_its_samples_does_not_win(bench: Bench, admits: bool) -> None:
    best = fastest(bench)
    verdict = sweep(bench, Machine(skipping=best, admits_skipping=admits))
    assert verdict.winner.point != best
    assert time_of(verdict.winner.point) == min(
        time_of(p) for p in bench.space.points if p != best and peak_of(p) <= LIMIT
    )


def test_repeats_do_not_count_and_are_kept_over_a_resume(bench: Bench) -> None:
    sweep(bench, Machine())
    trials, repeats = len(bench.records), list(bench.study.repeats)  # type: ignore[union-attr]
    sweep(bench, Machine())
    assert len(bench.records) == trials
    assert bench.study is not None
    assert bench.study.repeats == repeats


def test_every_trial_is_profiled_lightly_and_baseline_and_finalists_in_full(bench: Bench) -> None:
    planned: dict[int, str] = {}
    machine = Machine()
    light, full = ProfilePlan(steps=1), ProfilePlan(steps=3)
    bench.profiles = ProfilePlans(light, full)
    names = {None: "none", light: "light", full: "full"}

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        planned[request.trial] = names[bench.trainer.plans[request.trial]]
        return machine(point, request)

    machine.bench = bench
    bench.certify = CertifySettings(max_rechecks=1)
    bench.storage = "sqlite://"
    bench.run(behave, sampler="random", max_trials=6)
    assert planned[0] == "full"
    assert {planned[n] for n in range(1, 6)} == {"light"}
    assert bench.study is not None
    for repeat in bench.study.repeats:
        wanted = "full" if (repeat.role, repeat.round) == (Role.CERTIFY, 0) else "none"
        assert planned[FIRST_LAUNCH + repeat.number] == wanted


def test_a_disturbed_run_is_repeated_before_the_search_goes_on(bench: Bench) -> None:
    """And the sampler sees what the point takes in steady runs."""
    machine = Machine(noise=0.002, slow_half=fastest(bench))
    machine.bench = bench
    bench.certify, bench.storage = CertifySettings(), "sqlite://"
    bench.run(machine, sampler="guided", max_trials=24)
    assert bench.study is not None
    point = fastest(bench)
    [first] = [r for r in bench.records if r.parameters == point]
    again = [
        repeat.record
        for repeat in bench.study.repeats
        if repeat.role is Role.RECHECK and repeat.record.parameters == point
    ]
    assert again
    assert again[0].started_at < max(r.started_at for r in bench.records)
    assert first.outcome.batch_time_s == pytest.approx(1.3 * time_of(point), rel=0.05)
    [steady] = {
        seconds
        for code, seconds in bench.sweep.sampler.steady_s.items()
        if code == bench.study.encoding.row_of(point).tobytes()
    }
    assert steady == pytest.approx(time_of(point), rel=0.05)
    doubted = [r for r in bench.study.repeats if r.role is Role.RECHECK]
    assert len(bench.records) == 24  # repeats are none of the budget
    assert len(doubted) < 24 / 2
