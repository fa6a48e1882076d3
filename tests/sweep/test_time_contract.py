"""`search.max_hours` with a certification: rechecks never take the contest's time."""

from __future__ import annotations

import random

import pytest

from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import verdict_of
from autotune.ports import TrialRequest
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.sweep.loop import SweepEnd
from launch.simulated import FIRST_MOMENT, SimulatedTrial

from .conftest import RANKS, Bench

RUN_S = 25.0


@pytest.fixture
def space() -> LegalSpace:
    parameters = {"micro_batch_size": {"choices": [1, 2]}, "sp_degree": {"choices": [1, 2]}}
    parameters |= {name: {"choices": list(range(6))} for name in "abc"}
    return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, {}))


def near_the_best(point: Point, request: TrialRequest) -> SimulatedTrial:
    """All points are within reach of the best, and each run is up to 8 % slower than it may be."""
    true_s = 1.0 + 0.1 * random.Random(point.key).random()
    time_s = true_s * (1 + 0.08 * random.Random(f"{point.key} {request.trial}").random())
    step = {"event": "step", "time_s": time_s, "peak_reserved_bytes": 500}
    steps = [{**step, "step": n} for n in range(5)]
    return SimulatedTrial(RUN_S, [[{"event": "start"}, *steps, {"event": "end"}]] * RANKS)


@pytest.mark.parametrize(("runs", "slots"), [(36, 1), (60, 2)])
def test_the_contest_has_its_share(bench: Bench, runs: int, slots: int) -> None:
    """Of the time of `runs` runs, one after the other: a winner is certified, and in time."""
    bench.certify = CertifySettings()
    hours = runs * RUN_S / 3600
    end = bench.run(near_the_best, slots, "random", max_trials=1000, max_hours=hours)
    assert end is SweepEnd.TIME_USED
    assert bench.launcher is not None
    assert bench.launcher.now() - FIRST_MOMENT <= hours * 3600
    verdict = verdict_of(bench.sweep.bench.results)
    assert verdict is not None
    assert verdict.certified
