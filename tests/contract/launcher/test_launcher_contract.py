"""What every launcher does: the same tests over the simulated one and Ray."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.ports import Deadlines, EndKind, Launcher, RankExit, TrialEnd, TrialRequest
from launch.errors import TrialFilesError

Request = Callable[..., TrialRequest]
LONG_S = 30.0


def run(launcher: Launcher, request: TrialRequest) -> TrialEnd:
    launcher.start(request)
    (end,) = launcher.wait(LONG_S)
    assert end.trial == request.trial
    return end


def events(folder: Path, rank: int) -> list[str]:
    lines = (folder / f"rank{rank}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


def test_a_trial_finishes(launcher: Launcher, request_trial: Request) -> None:
    before = launcher.now()
    request = request_trial(0, "finish")
    end = run(launcher, request)
    assert end.kind is EndKind.FINISHED
    assert end.exits == (RankExit(0, 0), RankExit(1, 0))
    assert before <= end.started_at < end.ended_at <= launcher.now()
    for rank in range(2):
        assert events(request.folder, rank) == ["start", "step", "step", "step", "end"]


def test_one_failed_rank_ends_the_trial(launcher: Launcher, request_trial: Request) -> None:
    end = run(launcher, request_trial(0, "fail"))
    assert end.kind is EndKind.RANK_FAILED
    assert end.reason == "rank 1 exited with code 3"
    assert end.exits == (RankExit(0, -15, by_us=True), RankExit(1, 3))
    assert end.ended_at - end.started_at < 10


def test_output_without_steps_is_a_hang(launcher: Launcher, request_trial: Request) -> None:
    deadlines = Deadlines(first_step_s=0.7)
    end = run(launcher, request_trial(0, "silent", deadlines=deadlines))
    assert end.kind is EndKind.HUNG
    assert end.reason == "rank 0 made no first step within first_step_s=0.7 s"


def test_a_stopped_trial_ends(launcher: Launcher, request_trial: Request) -> None:
    launcher.start(request_trial(0, "run"))
    assert launcher.wait(0.5) == ()
    launcher.stop(0)
    (end,) = launcher.wait(LONG_S)
    assert (end.trial, end.kind) == (0, EndKind.STOPPED)
    assert [(one.code, one.by_us) for one in end.exits] == [(-15, True)] * 2


def test_a_trial_stopped_at_once_ends(launcher: Launcher, request_trial: Request) -> None:
    launcher.start(request_trial(0, "run"))
    launcher.stop(0)
    (end,) = launcher.wait(LONG_S)
    assert end.kind is EndKind.STOPPED


def test_stopping_what_does_not_run_changes_nothing(
    launcher: Launcher, request_trial: Request
) -> None:
    launcher.stop(12345)
    run(launcher, request_trial(0, "finish"))
    launcher.stop(0)
    assert run(launcher, request_trial(1, "finish")).kind is EndKind.FINISHED


def test_a_trial_that_heeds_it_ends_when_it_is_asked_to_finish(
    launcher: Launcher, request_trial: Request
) -> None:
    request = request_trial(0, "heed")
    launcher.start(request)
    assert launcher.wait(0.5) == ()
    launcher.finish(0)
    launcher.finish(0)
    (end,) = launcher.wait(LONG_S)
    assert (end.trial, end.kind) == (0, EndKind.FINISHED)
    assert end.exits == (RankExit(0, 0), RankExit(1, 0))
    assert end.ended_at <= launcher.now()
    for rank in range(2):
        assert events(request.folder, rank) == ["start", "step", "profile", "end"]


def test_a_trial_may_be_asked_to_finish_before_its_first_step(
    launcher: Launcher, request_trial: Request
) -> None:
    launcher.start(request_trial(0, "heed"))
    launcher.finish(0)
    (end,) = launcher.wait(LONG_S)
    assert end.kind is EndKind.FINISHED


def test_a_trial_that_does_not_heed_it_goes_on(launcher: Launcher, request_trial: Request) -> None:
    launcher.start(request_trial(0, "run"))
    launcher.finish(0)
    assert launcher.wait(0.7) == ()
    launcher.stop(0)
    (end,) = launcher.wait(LONG_S)
    assert end.kind is EndKind.STOPPED


def test_asking_what_does_not_run_to_finish_changes_nothing(
    launcher: Launcher, request_trial: Request
) -> None:
    launcher.finish(12345)
    request = request_trial(0, "finish")
    run(launcher, request)
    before = sorted(request.folder.iterdir())
    launcher.finish(0)
    assert sorted(request.folder.iterdir()) == before
    assert run(launcher, request_trial(1, "finish")).kind is EndKind.FINISHED


def test_wait_lasts_as_long_as_it_was_told(launcher: Launcher) -> None:
    before = launcher.now()
    assert launcher.wait(0.3) == ()
    assert 0.3 - 1e-6 <= launcher.now() - before < 2.0


def test_trials_run_side_by_side_and_end_by_themselves(
    launcher: Launcher, request_trial: Request
) -> None:
    assert launcher.slots == 2
    launcher.start(request_trial(0, "run"))
    launcher.start(request_trial(1, "finish"))
    (first,) = launcher.wait(LONG_S)
    assert (first.trial, first.kind) == (1, EndKind.FINISHED)
    launcher.stop(0)
    (second,) = launcher.wait(LONG_S)
    assert (second.trial, second.kind) == (0, EndKind.STOPPED)
    assert second.started_at <= first.ended_at <= second.ended_at


def test_a_failure_leaves_the_next_trial_alone(launcher: Launcher, request_trial: Request) -> None:
    run(launcher, request_trial(0, "fail"))
    assert run(launcher, request_trial(1, "finish")).kind is EndKind.FINISHED


def test_the_programs_files_are_written(launcher: Launcher, request_trial: Request) -> None:
    files = {"model config.yaml": "lr: 1e-4\n", "deep/er/调优.txt": "ü"}
    request = request_trial(0, "finish", "a=b", files=files, env={"A": "b"})
    run(launcher, request)
    for name, text in files.items():
        assert (request.folder / name).read_text(encoding="utf-8") == text
    program = json.loads((request.folder / "program.json").read_text(encoding="utf-8"))
    assert program["argv"] == list(request.program.argv)
    assert program["env"] == request.program.env
    assert program["env"]["A"] == "b"


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", ""])
def test_files_stay_inside_the_trials_folder(
    launcher: Launcher, request_trial: Request, name: str
) -> None:
    request = request_trial(0, "finish", files={"inside": "x", name: "y"})
    with pytest.raises(TrialFilesError, match="relative to the trial's folder"):
        launcher.start(request)
    assert list(request.folder.iterdir()) == []
    assert launcher.wait(0.0) == ()


def test_suspicions_of_a_sound_launcher_cost_no_device(
    launcher: Launcher, request_trial: Request
) -> None:
    slots = launcher.slots
    run(launcher, request_trial(0, "fail"))
    launcher.suspect(0, 1)
    launcher.suspect(0, None)
    launcher.suspect(99, 0)
    assert launcher.slots == slots
    assert [text for text in launcher.notices() if not text] == []
    assert list(launcher.notices()) == []  # each is told once
    assert run(launcher, request_trial(1, "finish")).kind is EndKind.FINISHED


def test_a_clock_that_is_set_changes_no_duration(
    launcher: Launcher, request_trial: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, set_back = launcher.now(), time.time() - 7200
    monkeypatch.setattr(time, "time", lambda: set_back)
    end = run(launcher, request_trial(0, "finish"))
    assert before <= end.started_at <= end.ended_at < before + 60
