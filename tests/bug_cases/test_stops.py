"""Ways in which a sweep is stopped, and that the same command goes on after each."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import optuna
import pytest

from launch.ray_session import sigterm_handler_kept

from .conftest import Program, ended, once

ENDS_ORDERLY = ["COMPLETE", "COMPLETE", "FAIL"]


def by(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_end_leaves_a_report_and_nothing_running(
    program: Program, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Case 1: what Slurm, systemd and Kubernetes send first, and Ctrl-C."""
    program.behave = once(2, by(number))
    assert program.run() == 130
    assert "The same command goes on" in capsys.readouterr().out
    assert program.states == ENDS_ORDERLY
    assert "2 of 12 legal points were tried" in program.report
    assert program.run("search.max_trials=4") == 0
    assert program.states == [*ENDS_ORDERLY, "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_a_rude_end_loses_no_result(program: Program, number: int) -> None:
    """Case 1: the machine, the terminal or the kernel has had enough."""
    program.behave = once(2, by(number))
    assert ended(program.start("killed")) == -number
    assert len(program.trials) == 2
    assert program.run("search.max_trials=4") == 0
    assert program.states == [*ENDS_ORDERLY, "COMPLETE", "COMPLETE"]
    reason = optuna.load_study(
        study_name="toy", storage=f"sqlite:///{program.study / 'study.db'}"
    ).trials[2].user_attrs["reason"]  # fmt: skip
    assert reason == "interrupted: the sweep was killed"


def test_a_terminal_that_is_closed_ends_it_politely(program: Program) -> None:
    """People start it in the evening, over ssh, and shut the laptop."""
    program.behave = once(2, by(signal.SIGHUP))
    assert ended(program.start("hung up")) == 130
    assert "stopped" in (program.study / "events.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_again_while_it_closes(
    program: Program, monkeypatch: pytest.MonkeyPatch, number: int, hangs: bool
) -> None:
    """Half-closed, Ray would end the process without a word; only a closing that hangs is left."""
    if hangs:
        monkeypatch.setattr("autotune.cli.interrupt.CLOSING_S", -1.0)

    def interrupt() -> None:
        launcher = program.launchers[-1]
        close = launcher.close

        def interrupted() -> None:
            os.kill(os.getpid(), number)
            close()

        launcher.close = interrupted  # type: ignore[method-assign]
        os.kill(os.getpid(), number)

    program.behave = once(2, interrupt)
    assert program.run() == 130
    assert (program.study / "report" / "report.md").exists() != hangs
    assert program.run("search.max_trials=4") == 0
    assert program.states == [*ENDS_ORDERLY, "COMPLETE", "COMPLETE"]


class FailingSampler(optuna.samplers.RandomSampler):
    """A sampler of the user's own, with a fault that a person mends."""

    fails = True

    def sample_independent(self, study, trial, name, distribution):
        if self.fails and trial.number == 3:
            raise RuntimeError("in the user's sampler")
        return super().sample_independent(study, trial, name, distribution)


def test_a_fault_in_the_users_sampler_costs_no_result(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 52: the history is there for the next start, and the same sampler goes on with it."""
    words = (f"search.sampler={{_target_: {__name__}.FailingSampler}}", "search.max_trials=6")
    with pytest.raises(RuntimeError, match="in the user's sampler"):
        program.run(*words)
    before = program.trials
    monkeypatch.setattr(FailingSampler, "fails", False)
    assert program.run(*words) == 0
    assert program.trials[:3] == before
    assert program.states == ["COMPLETE"] * 6


@pytest.mark.parametrize("sampler", ["guided", "tpe", "random"])
def test_the_search_goes_on_as_if_it_had_never_stopped(program: Program, sampler: str) -> None:
    """Case 52."""
    words = (f"search.sampler={sampler}", "search.max_trials=8")
    assert program.run(*words, "study.name=whole") == 0
    program.behave = once(4, by(signal.SIGKILL))
    ended(program.start("stopped", *words))
    assert program.run(*words) == 0
    whole = (program.folder / "studies" / "whole" / "trials.jsonl").read_text(encoding="utf-8")
    wanted = [one["parameters"] for one in map(json.loads, whole.splitlines())]
    assert [trial["parameters"] for trial in program.trials] == wanted


def test_a_sigterm_while_ray_starts_is_the_users() -> None:
    """Ray's own handler of those seconds exits with 15, and says nothing."""
    with pytest.raises(KeyboardInterrupt), sigterm_handler_kept():
        raise SystemExit(signal.SIGTERM)
    with pytest.raises(SystemExit), sigterm_handler_kept():
        raise SystemExit(3)
