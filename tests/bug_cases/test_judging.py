"""What counts as the best, and what a failed run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.cli.main import main
from autotune.ports import TrialRequest
from launch.simulated import SimulatedTrial

from .conftest import LIMIT, Program, Values, broken, ran, usual


@pytest.mark.parametrize("sampler", ["guided", "tpe", "random"])
def test_a_default_that_is_the_optimum_is_measured_first_and_kept(
    program: Program, sampler: str
) -> None:
    """Case 67: the result is never worse than what the user has."""

    def behave(values: Values, request: TrialRequest) -> SimulatedTrial:
        is_default = (values["batch"], values["chunk"]) == ("1", "0")
        return ran(1.0 if is_default else 1.0 + float(values["batch"]))

    program.behave = behave
    assert program.run(f"search.sampler={sampler}", "search.max_trials=5") == 0
    assert program.trials[0]["parameters"] == {"batch": 1, "chunk": 0}
    assert program.best["trial"] == 0
    assert program.best["gain"]["keep_baseline"] is True


def test_a_default_that_does_not_run_is_no_reason_to_stop(program: Program) -> None:
    """Case 67."""
    crash = {"event": "error", "kind": "exception", "message": "RuntimeError: no kernel"}

    def behave(values: Values, request: TrialRequest) -> SimulatedTrial:
        is_default = (values["batch"], values["chunk"]) == ("1", "0")
        return broken([crash]) if is_default else usual(values, request)

    program.behave = behave
    assert program.run() == 0
    assert program.best["baseline"]["status"] == "failed"
    assert program.best["parameters"]["batch"] == 4


def test_the_trainers_own_message_is_shown(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 69: what a pipeline stage without a layer ends with."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "pretrain_vlm.py", line 5, in <module>\n    main()\n'
        "AssertionError: learning_rate is None\n"
    )
    program.behave = lambda values, request: (
        broken([{"event": "start"}], log) if values["batch"] == "4" else usual(values, request)
    )
    assert program.run() == 0
    assert "AssertionError: learning_rate is None" in capsys.readouterr().out
    assert "AssertionError: learning_rate is None" in program.report


@pytest.mark.parametrize(
    "row",
    ["8,-1,0.0,ok", "8,0.0,0.0,ok", "8,-28.8,0,ok", "8,nan,0,ok", "8,-1,,failed"],
)
def test_a_failed_row_of_an_older_table_is_never_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    """Case 65: failed runs were stored as latency -1, peak memory 0.0."""
    table = tmp_path / "T.csv"
    lines = ["a,batch_time_s,peak_memory_bytes,status", "1,2.0,900,ok", "2,1.5,900,ok", row]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [f"replay.table={table}", "replay.samplers=[random]", "replay.seeds=3"]
    assert main(["replay", *words, "replay.budget=3", f"replay.out={tmp_path / 'out'}"]) == 0
    capsys.readouterr()
    runs = (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8")
    assert "1.5" in runs
    assert "-1" not in runs
    assert "-28.8" not in runs


@pytest.mark.parametrize("peak", [0, -1])
def test_a_peak_that_cannot_be_is_not_within_the_limit(program: Program, peak: int) -> None:
    """Case 65: a run always holds something on its device."""
    program.behave = lambda values, request: ran(1.0, peak)
    assert program.run("search.max_trials=2") == 3
    assert {trial["status"] for trial in program.trials} == {"failed"}


@pytest.mark.parametrize("peak", [None, "900", float("nan"), float("inf"), [900]])
def test_a_peak_that_is_no_number_is_not_within_the_limit(program: Program, peak: object) -> None:
    """Case 65."""
    program.behave = lambda values, request: ran(1.0, peak)
    assert program.run("search.max_trials=2") == 3
    assert {trial["status"] for trial in program.trials} == {"failed"}


def test_the_limit_itself_is_within_the_limit(program: Program) -> None:
    program.behave = lambda values, request: ran(1.0, LIMIT + (values["batch"] == "4"))
    assert program.run() == 0
    status = {trial["parameters"]["batch"]: trial["status"] for trial in program.trials}
    assert (status[1], status[2], status[4]) == ("ok", "ok", "over_limit")
