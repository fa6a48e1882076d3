"""Memory and files of a long study. `AUTOTUNE_TRIALS=2000` runs it at the length of a week."""

from __future__ import annotations

import ctypes
import gc
import os

import psutil
import pytest

from autotune.ports import TrialRequest
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from launch.simulated import SimulatedTrial

from .conftest import Bench, measured

TRIALS = int(os.environ.get("AUTOTUNE_TRIALS", "250"))
SETTLED = 100  # trials after which everything is imported and every pool is filled
MOST_BYTES_A_TRIAL = (50 << 20) / 2000


@pytest.fixture
def space() -> LegalSpace:
    sizes = {"micro_batch_size": [1, 2], "sp_degree": [1, 2, 4, 8]}
    rest = {name: list(range(8)) for name in ("a", "b", "c")}
    parameters = {
        name: {"choices": choices, "ordered": True} for name, choices in (sizes | rest).items()
    }
    return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, {}))


def memory_in_use() -> int:
    """Bytes, without freed ones that glibc keeps for the next allocation (up to 40 MiB here)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("sampler", ["random", "guided"])
def test_memory_grows_by_what_the_results_take(bench: Bench, sampler: str) -> None:
    held: dict[int, int] = {}

    def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
        bench.listener.moments.clear()
        bench.listener.launched.clear()
        bench.trainer.plans.clear()
        if request.trial in (SETTLED, TRIALS - 1):
            held[request.trial] = memory_in_use()
        return measured(point)

    bench.tick_s = 60.0
    bench.run(behave, sampler=sampler, max_trials=TRIALS)
    assert len(bench.records) == TRIALS
    grown = held[TRIALS - 1] - held[SETTLED]
    assert grown < MOST_BYTES_A_TRIAL * (TRIALS - SETTLED) + (5 << 20), f"{grown / 2**20:.1f} MiB"
    folders = [path.name for path in bench.paths.trials.iterdir()]
    assert sorted(folders) == [f"{number:04d}" for number in range(TRIALS)]
    line = bench.paths.journal.stat().st_size / TRIALS
    assert line < 2000
    beside = {path.name for path in bench.paths.root.iterdir()}
    assert beside <= {"config.yaml", "study.db", "trials.jsonl", "trials", "repeats", ".lock"}
