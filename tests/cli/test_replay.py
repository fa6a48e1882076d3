"""`python -m autotune replay`: the command of the contract, and mistakes in one message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from autotune.cli.arguments import parse_arguments
from autotune.cli.main import main
from autotune.errors import UserError

CONTRACT = ["sampler", "mean_regret", "hit_5pct", "median_evals_to_5pct", "score", "oom"]
CONTRACT += ["duplicates", "ask_ms"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """60 points; the optimum is 1 s at a=5, b=2, and those with a*b > 30 do not run."""
    lines = ["a,b,batch_time_s"]
    for a in range(10):
        for b in range(6):
            time_s = "" if a * b > 30 else str(1 + 0.1 * ((a - 5) ** 2 + (b - 2) ** 2))
            lines.append(f"{a},{b},{time_s}")
    path = tmp_path / "my table.csv"
    path.write_text("\n".join(lines))
    return path


def test_the_command_of_the_contract(table: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["replay", f"replay.table={table}", "replay.samplers=[tpe,random]", "replay.seeds=4"]
    summaries = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        assert main([*argv, "replay.budget=0.2", f"replay.out={out}", f"replay.jobs={jobs}"]) == 0
        assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
        assert len(pd.read_csv(out / "curves.csv")) == 2 * 12
        assert len(pd.read_csv(out / "runs.csv")) == 2 * 4
        assert sorted(path.name for path in out.iterdir()) == [
            "curves.csv",
            "curves.png",
            "runs.csv",
            "summary.csv",
        ]
        summaries.append(pd.read_csv(out / "summary.csv"))
    assert list(summaries[0].columns)[:8] == CONTRACT
    assert summaries[0]["sampler"].tolist() == ["tpe", "random"]
    assert summaries[0]["duplicates"].tolist() == [0, 0]
    same = [summary.drop(columns="ask_ms") for summary in summaries]
    pd.testing.assert_frame_equal(*same)
    printed = capsys.readouterr().out
    assert (
        "my table.csv: 60 points of 2 parameters, 5 do not run; the optimum is 1000 ms" in printed
    )
    assert "12 evaluations a run" in printed


def test_noise_and_a_baseline(table: Path, tmp_path: Path, capsys) -> None:
    argv = ["replay", f"replay.table={table}", "replay.samplers=random", "replay.seeds=2"]
    argv += ["replay.noise=0.005", "replay.outliers=0.1", "replay.baseline={a: 0, b: 0}"]
    assert main([*argv, f"replay.out={tmp_path / 'out'}", "replay.budget=20"]) == 0
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary["launches"][0] > 20
    curves = pd.read_csv(tmp_path / "out" / "curves.csv")
    assert curves["mean_best_s"][0] == pytest.approx(1 + 0.1 * (25 + 4))
    assert "trial 0 is the baseline: a=0 b=0" in capsys.readouterr().out


def test_names_from_files_are_printed_whatever_they_hold(tmp_path: Path, capsys) -> None:
    entries = [
        '"1": {"$x^": "[bold]", "time": 3}',
        '"2": {"$x^": "\\ud800", "time": "\\ud800 [/]"}',
    ]
    path = tmp_path / "[red]$a$ 训练.json"
    path.write_text('{"tune_params_keys": ["$x^"], "cache": {' + ",".join(entries) + "}}")
    argv = ["replay", f"replay.table={path}", "replay.samplers=random"]
    argv += ["replay.seeds=1", "replay.budget=2", "replay.baseline=median"]
    assert main([*argv, f"replay.out={tmp_path / 'out'}"]) == 0
    printed = capsys.readouterr().out
    assert "[red]$a$ 训练.json: 2 points of 1 parameters" in printed
    assert "do not run: 1 x ? [/]" in printed
    assert "$x^=[bold]" in printed
    assert (tmp_path / "out" / "curves.png").is_file()


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["replay.table=nope.csv"],
        ["replay.table=."],
        ["replay.table={table}", "replay.samplers=[tpee]"],
        ["replay.table={table}", "replay.seedz=3"],
        ["replay.table={table}", "search.max_trials=3"],
        ["replay.table={table}", "replay.baseline={a: 77}"],
        ["replay.table={table}", "replay.memory_limit=1GiB"],
        ["replay.table={table}", "replay.samplers={x: {_target_: builtins.dict}}"],
    ],
    ids=" ".join,
)
def test_wrong_input_is_one_message_and_exit_code_2_and_nothing_is_written(
    argv: list[str], table: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["replay", *(word.replace("{table}", str(table)) for word in argv)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("autotune: ")
    assert "search.sampler" not in printed.err
    assert len(printed.err.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("my table.csv", "my table.csv cannot be written (File exists); give a folder"),
        ("my table.csv/x", "my table.csv/x cannot be written (Not a directory); give a"),
        ("y" * 300, "cannot be written (File name too long); give a folder"),
        ("/proc/nobody", "replay.out=/proc/nobody cannot be written (No such file"),
        ("taken", "taken: curves.png is a folder there; move it away"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(
    table: Path, tmp_path: Path, out: str, message: str, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken" / "curves.png").mkdir(parents=True)
    argv = ["replay", f"replay.table={table}", "replay.samplers=random", f"replay.out={out}"]
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert f"replay.out={out}" in printed.err
    assert message in printed.err
    assert "seeds" not in printed.err
    assert printed.out == ""


def test_a_sampler_that_fails_at_its_first_proposal_is_told_before_anything_runs(
    table: Path, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "out"
    own = "[random,{x: {_target_: optuna.samplers.TPESampler, n_startup_trials: abc}}]"
    argv = ["replay", f"replay.table={table}", f"replay.samplers={own}", f"replay.out={out}"]
    assert main(argv) == 2
    assert "replay.samplers: optuna.samplers.TPESampler cannot prop" in capsys.readouterr().err
    assert not out.exists()


def test_numbers_far_apart_do_not_end_it(tmp_path: Path) -> None:
    """They name a parameter that moves memory, which the guided sampler takes by its ratios."""
    path, out = tmp_path / "T.csv", tmp_path / "out"
    rows = [f"{10.0 ** (30 * n - 300)},{m},{1 + n},{100 + n}" for n in range(20) for m in range(2)]
    header = "micro_batch_size,b,batch_time_s,peak_memory_bytes"
    path.write_text("\n".join([header, *rows]))
    argv = ["replay", f"replay.table={path}", "replay.samplers=guided", "replay.seeds=1"]
    assert main([*argv, "replay.budget=15", "replay.jobs=1", f"replay.out={out}"]) == 0
    assert len(pd.read_csv(out / "runs.csv")) == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["replay", "T.csv"], "cannot read 'T.csv'; write key=value, such as replay.table=T.csv"),
        (["replay", "--config-dir", "x"], "--config-dir goes with configurations; replay reads a"),
        (["replay", "--out", "x"], "--out goes with export and analyze, not with replay"),
        (["reply"], "unknown verb 'reply'; did you mean 'replay'"),
    ],
)
def test_mistakes_are_named(argv: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_arguments(argv)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_with_130_and_leaves_no_process(
    table: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "autotune", "replay", f"replay.table={table}"]
    command += ["replay.samplers=[random,tpe]", "replay.seeds=60", "replay.jobs=2"]
    process = subprocess.Popen(
        [*command, "replay.budget=0.5", f"replay.out={tmp_path / 'out'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    # From here on processes are at work.
    assert process.stderr.readline() == "random: 60 seeds\n"
    os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait(60) == 130
    assert "Traceback" not in rest
    assert list((tmp_path / "out").iterdir()) == []
    deadline = time.monotonic() + 30
    while _group_is_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _group_is_alive(process.pid)


def _group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
