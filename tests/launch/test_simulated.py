"""The virtual clock of the simulated launcher."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from autotune.ports import (
    Deadlines,
    EndKind,
    Placement,
    RankExit,
    RankProgram,
    TrialEnd,
    TrialRequest,
)
from launch.errors import DevicesUnavailable
from launch.simulated import SimulatedLauncher, SimulatedTrial

START = 1000.0


def request(trial: int, folder: Path) -> TrialRequest:
    place = folder / str(trial)
    place.mkdir()
    program = RankProgram((sys.executable,), place)
    return TrialRequest(trial, 1, place, program, Placement(1, 2, "npu"), Deadlines())


def launcher(*durations: float, slots: int = 1, **more: object) -> SimulatedLauncher:
    trials = [SimulatedTrial(duration, **more) for duration in durations]
    return SimulatedLauncher(lambda request: trials[request.trial], slots, START)


def test_wait_moves_the_clock_to_the_next_end(tmp_path: Path) -> None:
    ours = launcher(300.0, 100.0, slots=2)
    ours.start(request(0, tmp_path))
    ours.start(request(1, tmp_path))
    assert [(end.trial, end.ended_at) for end in ours.wait(1e9)] == [(1, START + 100)]
    assert ours.now() == START + 100
    assert ours.wait(50.0) == ()
    assert ours.now() == START + 150
    assert ours.wait(1e9) == (
        TrialEnd(
            trial=0,
            kind=EndKind.FINISHED,
            reason="every rank exited with 0",
            started_at=START,
            ended_at=START + 300,
            exits=(RankExit(0, 0), RankExit(1, 0)),
        ),
    )


def test_records_appear_as_the_clock_moves(tmp_path: Path) -> None:
    records = [[{"event": "step", "step": step} for step in range(10)]] * 2
    ours = launcher(100.0, records=records)
    ours.start(request(0, tmp_path))
    path = tmp_path / "0" / "rank1.jsonl"
    ours.wait(35.0)
    assert len(path.read_text().splitlines()) == 3
    ours.stop(0)
    (end,) = ours.wait(0.0)
    assert (end.kind, end.ended_at) == (EndKind.STOPPED, START + 35)
    assert path.read_text().splitlines()[-1] == '{"event": "step", "step": 2}'


def test_finishing_takes_its_time_and_adds_its_records(tmp_path: Path) -> None:
    steps = [{"event": "step", "step": step} for step in range(10)]
    after = [{"event": "profile"}, {"event": "end"}]
    ours = launcher(100.0, records=[steps] * 2, finishing_s=40.0, finishing_records=[after] * 2)
    ours.start(request(0, tmp_path))
    ours.wait(55.0)
    ours.finish(0)
    ours.wait(1.0)
    ours.finish(0)
    (end,) = ours.wait(1e9)
    assert (end.kind, end.ended_at) == (EndKind.FINISHED, START + 95)
    for rank in range(2):
        lines = (tmp_path / "0" / f"rank{rank}.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [*steps[:5], *after]


def test_finishing_never_makes_a_trial_longer(tmp_path: Path) -> None:
    records = [[{"event": "step"}, {"event": "end"}]] * 2
    ours = launcher(100.0, records=records, finishing_s=20.0)
    ours.start(request(0, tmp_path))
    ours.wait(90.0)
    ours.finish(0)
    (end,) = ours.wait(1e9)
    assert end.ended_at == START + 100
    assert len((tmp_path / "0" / "rank0.jsonl").read_text().splitlines()) == 2


def test_a_trial_that_would_fail_later_finishes(tmp_path: Path) -> None:
    ours = launcher(100.0, kind=EndKind.RANK_FAILED, exits=(RankExit(0, 1),))
    ours.start(request(0, tmp_path))
    ours.wait(10.0)
    ours.finish(0)
    (end,) = ours.wait(1e9)
    assert (end.kind, end.ended_at) == (EndKind.FINISHED, START + 10)
    assert end.exits == (RankExit(0, 0), RankExit(1, 0))


def test_more_trials_than_slots_are_refused(tmp_path: Path) -> None:
    ours = launcher(math.inf, 1.0)
    ours.start(request(0, tmp_path))
    with pytest.raises(DevicesUnavailable, match=r"1 slot\(s\), all taken"):
        ours.start(request(1, tmp_path))


def test_close_forgets_what_runs(tmp_path: Path) -> None:
    ours = launcher(5.0)
    ours.start(request(0, tmp_path))
    ours.close()
    ours.close()
    assert ours.wait(10.0) == ()
