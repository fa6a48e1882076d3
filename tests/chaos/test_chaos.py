"""The short form of `chaos.py`: some kills, and the result of an unbroken run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from tests.chaos.chaos import Chaos, short_pause
from tests.chaos.stand_in import step_s

pytestmark = [pytest.mark.ray, pytest.mark.ranks, pytest.mark.timeout(420)]
KILLS = 4


def test_kills_lose_nothing_leave_nothing_and_change_no_result(tmp_path: Path) -> None:
    chaos = Chaos.of_stand_in(tmp_path, seed=7)
    chaos.run(KILLS, short_pause)
    assert sum(chaos.killed.values()) == KILLS
    chaos.require_whole()
    for trial in chaos.trials:
        if trial["status"] == "ok":
            point = trial["parameters"]
            assert trial["batch_time_s"] == pytest.approx(step_s(point["a"], point["b"]))
        else:
            assert trial["status"] == "infrastructure", trial["reason"]
    best = yaml.safe_load((chaos.study / "best.yaml").read_text(encoding="utf-8"))
    assert best["parameters"] == {"a": 4, "b": 3}
    assert best["batch_time"]["mean_s"] == pytest.approx(step_s(4, 3))


def test_ray_that_dies_while_it_starts_is_started_again(tmp_path: Path) -> None:
    chaos = Chaos.of_stand_in(tmp_path, seed=0)
    sweep = chaos.program.start(*chaos.words, "search.max_trials=2")
    while not (found := list(chaos.processes("raylet", sweep))):
        assert sweep.poll() is None, chaos.program.output
        time.sleep(0.02)
    found[0].kill()
    assert sweep.wait(200) == 0, chaos.program.output
    assert [trial["status"] for trial in chaos.trials] == ["ok", "ok"]
    chaos.program.wait_until_nothing_is_left()
