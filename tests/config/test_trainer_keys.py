"""Keys of trainers on the command line, and model files that bring a space of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.config.compose import compose_config
from autotune.errors import UserError

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "command"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trainer.root", "~/MindSpeed-MM"),
        ("trainer.root", "/data/50% a=b,c#1 调优"),
        ("model.base.config", "examples/my model/a=b.yaml"),
    ],
)
def test_paths_of_a_checkout_are_taken_as_typed(key: str, value: str) -> None:
    overrides = ["model=qwen3_5_4b", f"{key}={value}"]
    config = compose_config(overrides).config
    assert value in (config.trainer.root, config.model.base["config"])


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "trainer.command={python} train.py --batch {micro_batch_size} --steps {steps}",
            "{python} train.py --batch {micro_batch_size} --steps {steps}",
        ),
        ("trainer.command=bash 'my run.sh' {steps}", "bash 'my run.sh' {steps}"),
        ("trainer.command=[python,train.py,'{steps}']", ["python", "train.py", "{steps}"]),
        ("trainer.command=null", None),
        ("trainer.cwd=/tmp/50% a=b,c#1", "/tmp/50% a=b,c#1"),
        ("trainer.printed=megatron", "megatron"),
        (
            r"trainer.printed=step (?P<step>\d+), (?P<s>[\d.]+)",
            r"step (?P<step>\d+), (?P<s>[\d.]+)",
        ),
        ("trainer.printed={time_ms: t}", {"time_ms": "t"}),
        ("trainer.setup=[/opt/set_env.sh]", ("/opt/set_env.sh",)),
    ],
)
def test_commands_and_patterns_are_taken_as_typed(override: str, expected: object) -> None:
    key = override.split("=")[0].split(".")[1]
    config = compose_config(["model=tiny_vlm", "trainer=command", override]).config
    assert getattr(config.trainer, key) == expected


def test_one_script_is_shown_as_a_list_of_it() -> None:
    with pytest.raises(UserError, match=r"setup='/env\.sh' must be a list, such as \[/env\.sh\]"):
        compose_config(["model=tiny_vlm", "trainer=command", "trainer.setup=/env.sh"])
    with pytest.raises(UserError, match=r"ranks='all' must be a list, such as \[0\]"):
        compose_config(["model=tiny_vlm", "profile.light.ranks=all"])


def test_a_model_file_brings_trainer_space_and_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose_config(["model=numpy_mlp"], EXAMPLE).config
    assert config.trainer.name == "command"
    assert config.study.name == "numpy_mlp"
    assert list(config.space["parameters"]) == ["micro_batch_size", "block", "recompute"]
    assert config.cluster.devices_per_trial == 1
    again = compose_config(["model=numpy_mlp", "trainer.window_steps=4", "study.name=x"], EXAMPLE)
    assert (again.config.trainer.window_steps, again.config.study.name) == (4, "x")


def test_a_model_without_any_space_is_told_of_both_ways(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("name: mine\n")
    with pytest.raises(UserError) as error:
        compose_config(["model=mine"], tmp_path)
    assert "unknown space=mine" in str(error.value)
    assert "space=NAME is given" in str(error.value)
    assert "space: of its own" in str(error.value)
