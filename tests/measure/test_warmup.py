"""Warm-up is found, on made-up runs and on real NPU baselines."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from autotune.measure.warmup import TimedStep, warmup_length

BASELINES = Path(__file__).parents[3] / "shared" / "data" / "mindspeed_mm_baselines"


def length(times: Sequence[float], window: int = 1) -> int:
    return warmup_length([TimedStep(n, n % window, t) for n, t in enumerate(times)])


@pytest.mark.parametrize("slow", [[50.0], [11.8, 2.3], [6.0, 3.0, 2.0, 1.5, 1.2]])
def test_slow_first_steps_are_warm_up(slow: list[float]) -> None:
    draw = random.Random(1)
    steady = [draw.gauss(1.0, 0.01) for _ in range(12)]
    assert length([*slow, *steady]) == len(slow)


def test_a_steady_run_has_none() -> None:
    draw = random.Random(2)
    assert [length([draw.gauss(1.0, 0.02) for _ in range(16)]) for _ in range(50)] == [0] * 50


def test_batches_of_different_length_are_no_warm_up() -> None:
    assert length([3.0, 1.0, 1.0, 1.0] * 4, window=4) == 0


def test_a_slow_step_later_on_is_no_warm_up() -> None:
    assert length([1.0, 1.0, 1.0, 5.0, *[1.0] * 8]) == 0


def test_a_run_that_never_settles_keeps_its_second_half() -> None:
    assert length([10.0, 9.0, 8.0, 7.0, 1.0, 1.0, 1.0, 1.0]) == 4


def test_a_second_half_that_still_warms_up_is_no_excuse() -> None:
    assert length([3.0] * 6 + [1.0] * 2) == 4


def test_rounded_times_are_as_good_as_others() -> None:
    assert length([0.2] * 4 + [0.1] * 6 + [0.5] + [0.1] * 6 + [0.5]) == 4


def test_nothing_to_compare_with() -> None:
    assert (length([]), length([5.0])) == (0, 0)


@pytest.mark.skipif(not BASELINES.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize("path", sorted(BASELINES.glob("*.json")), ids=lambda path: path.stem)
def test_real_runs_lose_at_least_what_mindspeed_mm_itself_drops(path: Path) -> None:
    baseline = json.loads(path.read_text())
    times = baseline["time"]
    if len(times) < 3:
        pytest.skip("too short a run")
    found = length(times)
    left = times[found:]
    assert times[0] < 1.3 * left[-1] or found >= 1
    assert max(left) < 1.5 * min(left)
