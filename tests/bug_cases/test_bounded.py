"""Case 51: what a long night costs the sweep itself."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import psutil

from autotune.ports import TrialRequest
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from launch.simulated import SimulatedTrial
from tests.sweep.conftest import Bench, Silent

TRIALS = 160
GROWTH_BYTES = 24 << 20
SECONDS_EACH = 0.2


class Deaf(Silent):
    """A listener that remembers nothing."""

    def started(self, *_: Any) -> None: ...
    def finished(self, *_: Any) -> None: ...
    def moment(self, *_: Any) -> None: ...


def test_many_trials_take_little_memory_and_little_time(tmp_path: Path) -> None:
    """Of 2000 trials the first took 30 ms each here, the last 115 ms, all of them 11 MB."""
    choices = {"choices": list(range(12)), "ordered": True}
    definition = SpaceDefinition.parse({"parameters": dict.fromkeys("abc", choices)}, {})
    bench = Bench(StudyPaths(tmp_path / "study"), LegalSpace.build(definition), Deaf(), tick_s=10)
    held: list[int] = []

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        if request.trial in (TRIALS // 4, TRIALS - 1):
            gc.collect()
            held.append(psutil.Process().memory_info().rss)
        step = {"event": "step", "time_s": 1.0, "peak_reserved_bytes": 500}
        steps = [{**step, "step": number} for number in range(5)]
        return SimulatedTrial(5.0, [[{"event": "start"}, *steps, {"event": "end"}]] * 2)

    before = time.process_time()
    bench.run(behave, sampler="random", max_trials=TRIALS)
    assert len(bench.records) == TRIALS
    assert held[1] - held[0] < GROWTH_BYTES
    assert (time.process_time() - before) / TRIALS < SECONDS_EACH
