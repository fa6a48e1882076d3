from __future__ import annotations

import pytest

from autotune.cli.arguments import parse_arguments
from autotune.cli.main import main
from autotune.errors import UserError


def test_sweep_is_the_default_verb() -> None:
    assert parse_arguments(["model=tiny_vlm"]).verb == "sweep"
    assert parse_arguments(["check", "model=tiny_vlm"]).verb == "check"
    assert parse_arguments([]).verb == "sweep"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["swep", "model=tiny_vlm"], "unknown verb 'swep'; did you mean 'sweep'"),
        (["model=tiny_vlm", "report"], "cannot read 'report'"),
        (["--nope"], "unrecognized arguments: --nope"),
        (["check", "--out", "x"], "--out goes with export"),
    ],
)
def test_mistakes_are_named(argv: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_arguments(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["model=nope"],
        ["chek"],
        ["check", "model=tiny_vlm", "memory.limit=60 GiBB"],
        ["check", "model=tiny_vlm", "space.parameters.sp_degree.choices=[1,two]"],
        ["check", "model=tiny_vlm", "space.constraints.0.rule='sp_degre > 1'"],
        ["check", "model=tiny_vlm", "space.constraints.0.rule='sp_degree >'"],
        ["check", "model=tiny_vlm", "space.constraints.0.rule='sp_degree > 99'"],
        ["status", "study.name=nope"],
        ["report"],
        ["export", "study.dir=nope"],
        ["status", "search.max_trials=3"],
        ["sweep", "model=tiny_vlm", "trainer.python=/no/such/python"],
        ["sweep", "model=tiny_vlm", "study.take_over=nope"],
        ["sweep", "model=tiny_vlm", "search.sampler=tpee"],
    ],
    ids=" ".join,
)
def test_wrong_input_is_one_message_and_exit_code_2_and_nothing_is_written(
    argv: list[str], tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("autotune: ")
    assert len(printed.err.splitlines()) <= 12
    assert "Traceback" not in printed.err
    assert list(tmp_path.iterdir()) == []


def test_devices_that_are_not_there_are_exit_code_4(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["model=tiny_vlm", "cluster.device=npu", "memory.limit=60GiB"]
    assert main(argv) == 4
    assert "a trial needs 4 npu devices, this machine has 0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
