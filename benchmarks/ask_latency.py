"""How long the guided sampler takes to propose one point of a large space in a long study.

Fills an Optuna study in memory with finished trials at random points and asks on, each ask
followed by its result: a few times with a new sampler object each (cold, as after a resume), then
with one object (warm). Prints milliseconds as they pass, in brackets those of this process's CPU,
and the bound the median of the warm ones has to keep.

    OMP_NUM_THREADS=1 python benchmarks/ask_latency.py
    OMP_NUM_THREADS=1 python benchmarks/ask_latency.py --profile   # and where the time goes
"""

from __future__ import annotations

import cProfile
import math
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.guided.belief import Knowledge
from autotune.search.point_sampler import PointSampler
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.storage import OptunaStore
from autotune.study.trial_record import TrialRecord

_COLD, _WARM = 3, 20
_LIMIT_BYTES = 60 * 2**30


@dataclass(frozen=True)
class Case:
    """points: legal ones, about. bound_ms: for one warm ask. has_peaks: known, or only who ran."""

    points: int
    trials: int
    bound_ms: int
    has_peaks: bool = True

    @property
    def name(self) -> str:
        """For a person."""
        memory = "peaks" if self.has_peaks else "sides"
        return f"{self.trials:,} trials, 10^{round(math.log10(self.points))} points, {memory}"


CASES = [
    Case(10**5, 1_000, 100),
    Case(10**5, 1_000, 100, has_peaks=False),
    Case(10**5, 5_000, 300),
    Case(10**5, 5_000, 300, has_peaks=False),
    Case(10**6, 1_000, 1_000),
]


@dataclass
class Asked:
    """Seconds of asks, as they pass and of CPU."""

    wall_s: list[float]
    cpu_s: list[float]

    def __str__(self) -> str:
        wall, cpu, most = median(self.wall_s), median(self.cpu_s), max(self.wall_s)
        return f"{1e3 * wall:6.0f} ({1e3 * cpu:4.0f}), longest {1e3 * most:5.0f}"


def main() -> None:
    """One line a case."""
    for case in CASES:
        study = _Study(case)
        cold = study.asked([study.new_sampler() for _ in range(_COLD)])
        sampler = study.new_sampler()
        study.asked([sampler])
        warm = study.asked([sampler] * _WARM)
        print(f"{case.name:<37} cold {cold}   warm {warm}   bound {case.bound_ms}", flush=True)
        if "--profile" in sys.argv:
            _profile("cold", lambda study=study: study.asked([study.new_sampler()]))
            _profile("warm", lambda study=study, sampler=sampler: study.asked([sampler] * _WARM))


def _profile(name: str, work: Callable[[], Any]) -> None:
    profile = cProfile.Profile()
    profile.runcall(work)
    print(f"--- {name}")
    pstats.Stats(profile).sort_stats("cumulative").print_stats(r"autotune|optuna/study", 25)
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


class _Study:
    """A study with finished trials at random points."""

    def __init__(self, case: Case) -> None:
        self.case, self.space = case, _space(case.points)
        self.encoding = Encoding(self.space)
        self.limit = _LIMIT_BYTES if case.has_peaks else None
        self.store = OptunaStore.in_memory(self.encoding, self.limit)
        rows = np.random.default_rng(0).permutation(len(self.space.codes))[: case.trials]
        self.store.write_again(
            [self._record(number, self.space.point(int(row))) for number, row in enumerate(rows)]
        )

    def new_sampler(self) -> PointSampler:
        return make_sampler("guided", self.encoding, 0, Knowledge(self.limit))

    def asked(self, samplers: list[PointSampler]) -> Asked:
        """Asks each of them once; the trial ends before the next is asked."""
        asked = Asked([], [])
        for sampler in samplers:
            wall, cpu = time.perf_counter(), time.process_time()
            number, point = self.store.ask(sampler)
            asked.wall_s.append(time.perf_counter() - wall)
            asked.cpu_s.append(time.process_time() - cpu)
            self.store.tell(self._record(number, point), worst_s=10.0)
        return asked

    def _record(self, number: int, point: Point) -> TrialRecord:
        seconds, peak = _seconds(point), _peak_bytes(point)
        if peak > _LIMIT_BYTES:
            outcome = Outcome(Status.OOM, "out of memory")
        else:
            known = peak if self.case.has_peaks else None
            outcome = Outcome(Status.OK, "", batch_time_s=seconds, peak_memory_bytes=known)
        return TrialRecord(number, point, outcome, 60.0, 0.0, 60.0, 1, "")


def _space(points: int) -> LegalSpace:
    """Parallel layouts and techniques."""

    def ladder(count: int, **rest: Any) -> dict[str, Any]:
        return {"choices": [2**n for n in range(count)], "ordered": True, **rest}

    more = 1 if points > 10**5 else 0
    parameters = {
        "tp": ladder(4),
        "pp": ladder(4 + more),
        "cp": ladder(3 + more),
        "micro_batch_size": ladder(5 + more),
        "chunk": ladder(4 + 2 * more),
        "recompute": {"choices": ["none", "selective", "full"]},
        "recompute_layers": ladder(4 + more, when="recompute == 'full'"),
        "offload": {"choices": [False, True]},
        "bucket": ladder(4 + 4 * more),
        "order": {"choices": ["none", "length", "cost"]},
    }
    return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, {}))


def _seconds(point: Point) -> float:
    bends = abs(math.log2(point["tp"]) - 1) + 0.5 * abs(math.log2(point["chunk"]) - 2)
    recompute = {"none": 0.0, "selective": 0.05, "full": 0.2}[point["recompute"]]
    order = {"none": 0.2, "length": 0.1, "cost": 0.0}[point["order"]]
    log = 0.1 * bends + recompute + order + 0.05 * math.log2(point["pp"]) - 0.1 * point["offload"]
    return math.exp(log) * (1 + 0.5 / point["micro_batch_size"])


def _peak_bytes(point: Point) -> int:
    kept = {"none": 1.0, "selective": 0.6, "full": 0.25}[point["recompute"]]
    activations = 24 * point["micro_batch_size"] * kept / (point["tp"] * point["cp"])
    return int((20 / point["pp"] + activations + 5) * 2**30)


if __name__ == "__main__":
    main()
