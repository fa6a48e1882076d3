"""What a program printed is looked at where its steps were not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autotune.measure.judge import JudgeSettings
from autotune.measure.racing import RaceRules
from autotune.measure.spread import RunSpread
from autotune.ports import Deadlines, EndKind, MeasurementPlan, Placement, TrialEnd
from autotune.space.point import Point
from autotune.study.paths import rank_log_file
from autotune.sweep.runner import Runner, RunOrder, Yardstick

PATTERN = r"step (?P<step>\d+) took (?P<time_ms>\S+) ms"
TRAINER = SimpleNamespace(
    trial_program=lambda *_: None, every_rank_records=False, heeds_finish=False
)


class OneEnd:
    """A launcher whose trial printed this and ended well, with no step read."""

    slots = 1

    def __init__(self, log: str) -> None:
        self.log = log

    def start(self, request: Any) -> None:
        rank_log_file(request.folder, 0).write_text(self.log)

    def wait(self, timeout_s: float) -> Sequence[TrialEnd]:
        return [TrialEnd(0, EndKind.FINISHED, "every rank exited with 0", 0.0, 1.0)]


@pytest.mark.parametrize(
    ("log", "reason"),
    [("", "without printing anything"), ("hello\n", "the last line that it printed is: hello")],
)
def test_a_run_without_steps_is_told_by_its_output(tmp_path: Path, log: str, reason: str) -> None:
    settings = JudgeSettings(1, 0, 1, 8, 1000, needs_peak=False, printed=PATTERN)
    runner = Runner(
        cast(Any, OneEnd(log)), cast(Any, TRAINER), Placement(1, 1, "cpu"), Deadlines(), settings
    )
    rules = RaceRules(min_steps=8, precision=0.1)
    runner.start(RunOrder(0, Point({"a": 1}), 1, tmp_path, MeasurementPlan(0, 8), rules))
    (result,) = runner.wait(0.0, Yardstick(RunSpread(0.03)))
    assert result.outcome.reason.endswith(reason)
