"""Printed times that the clock contradicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.measure.judge import JudgeSettings, judge
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Batch
from autotune.measure.outcome import Outcome, Status
from autotune.measure.racing import Decision
from autotune.measure.read import TrialFollower, Voices
from autotune.ports import EndKind, RankExit, TrialEnd
from autotune.study.paths import printed_records_file
from launch.printed_records import PrintedRecords

PATTERNS = [
    r"step (?P<step>\d+) took (?P<time_ms>\S+) ms",
    r"step (?P<step>\d+) rate (?P<samples_per_s>\S+) samples/s",
]


def run(
    folder: Path,
    line: str,
    gap_s: float,
    kind: EndKind = EndKind.FINISHED,
    decision: Decision = Decision.GO_ON,
    restarts: int = 0,
) -> Outcome:
    """Of a program on two ranks that prints the line every `gap_s` seconds, 19 steps a start."""
    now = [5.0]
    path = printed_records_file(folder, 0)
    form = format_of(PATTERNS, "trainer.printed")
    printed = PrintedRecords(path, form, Batch(8), clock=lambda: now[0])
    for _ in range(restarts + 1):
        for step in range(1, 20):
            now[0] += gap_s
            printed.feed(0, f"step {step} {line}\n".encode())
        now[0] += 60.0
    printed.close()
    follower = TrialFollower(folder, Voices(2, every_rank=False))
    follower.look()
    settings = JudgeSettings(2, 3, 1, 8, 1000, needs_peak=False, printed=PATTERNS)
    end = TrialEnd(1, kind, "", 0.0, 9.0, (RankExit(0, -15, by_us=True),))
    return judge(end, follower.ranks, settings, decision=decision)


@pytest.fixture(params=["took 1.00 ms", "rate 1e308 samples/s", "took 0.0001 ms"])
def untrue(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_time_that_the_clock_contradicts_is_a_failure(tmp_path: Path, untrue: str) -> None:
    found = run(tmp_path, untrue, gap_s=0.05)
    assert (found.status, found.batch_time_s) == (Status.FAILED, None)
    assert "its lines come 50 ms apart" in found.reason


@pytest.mark.parametrize("decision", [Decision.ENOUGH, Decision.LOSES])
def test_so_it_is_where_the_trial_was_ended_early(
    tmp_path: Path, untrue: str, decision: Decision
) -> None:
    """Such a time looks the best there is, so it is ended as soon as it seems to be known."""
    assert run(tmp_path, untrue, 0.05, EndKind.STOPPED, decision).status is Status.FAILED


def test_a_time_that_may_be_true_is_measured(tmp_path: Path) -> None:
    found = run(tmp_path, "took 50.0 ms", gap_s=0.05)
    assert (found.status, found.batch_time_s) == (Status.OK, pytest.approx(0.05))
    assert not [one for one in events(tmp_path) if one == "error"]


def test_a_run_that_begins_again_is_held_against_its_own_clock(tmp_path: Path) -> None:
    """The first run took ten times as long a step, and said so."""
    now = [0.0]
    path = printed_records_file(tmp_path, 0)
    printed = PrintedRecords(path, format_of(PATTERNS, "x"), clock=lambda: now[0])
    for gap_s in (0.5, 0.05):
        for step in range(1, 20):
            now[0] += gap_s
            printed.feed(0, f"step {step} took {gap_s * 1e3} ms\n".encode())
    printed.close()
    assert "error" not in events(tmp_path)


def test_the_pause_of_a_restart_is_no_step(tmp_path: Path) -> None:
    assert run(tmp_path, "took 50.0 ms", gap_s=0.05, restarts=2).status is Status.OK


@pytest.mark.parametrize("line", ["took 0.0009 ms", "rate 1e308 samples/s"])
def test_no_step_takes_less_than_a_microsecond(tmp_path: Path, line: str) -> None:
    """Where all lines come at once, and the clock says nothing."""
    found = run(tmp_path, line, gap_s=0.0)
    assert found.status is Status.FAILED
    assert "which is no time of a step" in found.reason


def events(folder: Path) -> list[str]:
    lines = printed_records_file(folder, 0).read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]
