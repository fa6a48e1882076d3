from __future__ import annotations

from pathlib import Path

import pytest

from autotune.cli.arguments import parse_arguments
from autotune.cli.main import main
from autotune.errors import UserError


@pytest.mark.parametrize(
    "argv",
    [
        ["check", "--config-dir", "my", "model=tiny_vlm", "space=mine"],
        ["--config-dir", "my", "check", "model=tiny_vlm", "space=mine"],
        ["check", "model=tiny_vlm", "--config-dir", "my", "space=mine"],
        ["check", "model=tiny_vlm", "space=mine", "--config-dir=my"],
    ],
)
def test_options_may_stand_anywhere(argv: list[str]) -> None:
    found = parse_arguments(argv)
    assert found.verb == "check"
    assert found.overrides == ("model=tiny_vlm", "space=mine")
    assert str(found.config_dir) == "my"


def test_sweep_is_the_default_verb() -> None:
    assert parse_arguments(["model=tiny_vlm"]).verb == "sweep"
    assert parse_arguments(["check", "model=tiny_vlm"]).verb == "check"
    assert parse_arguments([]).verb == "sweep"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["swep", "model=tiny_vlm"], "unknown verb 'swep'; did you mean 'sweep'"),
        (["model=tiny_vlm", "report"], "the verb comes first: autotune report model=tiny_vlm"),
        (["check", "tiny_vlm"], "cannot read 'tiny_vlm'; write key=value, such as model="),
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
        ["sweep", "model=tiny_vlm", "search.sampler=[tpe]"],
        ["check", "model=null"],
        ["check", "modle=tiny_vlm"],
        ["check", "model=tiny_vlm", "study.name=.."],
        ["check", "model=tiny_vlm", "study.name=a/b"],
        ["check", "model=tiny_vlm", "space.parameters.sp_degree.choices=[-1,2]"],
        ["check", "model=tiny_vlm", """space.constraints.0.rule='"a" * 1000000000 != 1'"""],
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
    argv = ["model=tiny_vlm", "cluster=npu", "cluster.devices_per_trial=4", "memory.limit=60GiB"]
    assert main(argv) == 4
    assert "a trial needs 4 npu devices, this machine has 0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def readme_block(start: str) -> str:
    """The code block of the README that begins with this line."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    return text[text.index(start) :].split("```")[0]


def test_the_space_and_the_model_that_the_readme_shows_are_accepted(tmp_path, capsys) -> None:
    for folder, start in (("space", "# my/space/mine.yaml"), ("model", "# my/model/mine.yaml")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.yaml").write_text(readme_block(start))
    options = ("--config-dir", str(tmp_path))
    assert main(["check", *options, "model=tiny_vlm", "space=mine"]) == 0
    assert "4 legal points of 5 combinations" in capsys.readouterr().out
    assert main(["check", *options, "model=mine", "space=tiny_dit"]) == 0


def test_any_number_of_devices_is_answered(capsys) -> None:
    """Rules may rely on each other; none may fail where another one excludes the point."""
    for devices in (1, 2, 3, 8, 16):
        code = main(["check", "model=tiny_vlm", f"cluster.devices_per_trial={devices}"])
        assert code in (0, 2), devices
        assert "cannot evaluate" not in capsys.readouterr().err


def test_an_accelerator_with_the_examples_memory_is_refused(capsys) -> None:
    assert main(["check", "model=tiny_vlm", "cluster.device=npu"]) == 2
    assert (
        "cluster.device_memory=66MiB is no npu device; give cluster=npu" in capsys.readouterr().err
    )


@pytest.mark.parametrize("content", [b"a: [", b"a: 1\na: 2\n", b"\xff\xfe"])
def test_a_configuration_file_that_is_broken_is_named(content: bytes, tmp_path, capsys) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_bytes(content)
    assert main(["check", "--config-dir", str(tmp_path), "model=mine", "space=tiny_vlm"]) == 2
    assert "Traceback" not in capsys.readouterr().err
