"""Values with characters that Hydra's grammar, YAML or a shell has other plans for."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from autotune.config.compose import compose_config
from autotune.errors import UserError

from .conftest import Program, Values, ran, values_of

ODD = [
    "/p/epoch=9-step=1.ckpt",
    "mlx5_0:1,mlx5_3:1",
    "a|b",
    "50%",
    "user@host",
    "it's",
    'say "hi"',
    "$HOME/*",
    "a;b&c#!",
    "{x: [1]}",
    "调优 🙂",
    "~/x",
    "\\back\\",
    "",
    " ",
]


def braced(text: str) -> str:
    """As a template writes braces."""
    return text.replace("{", "{{").replace("}", "}}")


@pytest.mark.parametrize("value", ODD)
def test_a_value_of_the_users_file_arrives_as_it_is(program: Program, value: str) -> None:
    """Cases 24, 25 and 28: as a word of the command and as a variable."""
    command = ["train", "--batch", "{batch}", "--chunk", "{chunk}", "{steps}", braced(value)]
    program.model["trainer"] = {"command": command, "env": {"X": braced(value)}}
    assert program.run("search.max_trials=1") == 0
    (request,) = program.requests
    assert request.program.argv[-1] == value
    assert request.program.env["X"] == value
    trainer = program.best["trainer"]
    assert trainer["config"]["command"][-1] == value
    assert trainer["env"]["X"] == value


@pytest.mark.parametrize("value", ["/p/epoch=9-step=1.ckpt", "mlx5_0:1,mlx5_3:1", "a|b", "50%@x"])
def test_a_command_on_the_command_line_is_taken_as_typed(program: Program, value: str) -> None:
    """Cases 24, 25 and 28."""
    command = f"train --batch {{batch}} --chunk {{chunk}} --steps {{steps}} '--x={value}'"
    assert program.run("search.max_trials=1", f"trainer.command={command}") == 0
    assert program.requests[0].program.argv[-1] == f"--x={value}"


@pytest.mark.parametrize("value", ["a|b", "50%", "user@host", "a:b", "$HOME/x"])
def test_a_variable_on_the_command_line(program: Program, value: str) -> None:
    """Case 28."""
    assert program.run("search.max_trials=1", f"+trainer.env.X={value}") == 0
    assert program.requests[0].program.env["X"] == value


@pytest.mark.parametrize(
    "word",
    [
        "+trainer.env.X=mlx5_0:1,mlx5_3:1",
        "+trainer.env.X=/p/epoch=9-step=1.ckpt",
        "+trainer.env.X=调优",
        "+trainer.env.X=~/x",
        "trainer.env.X=plain",
        "trainer.env.X=a b=c, [d]",
        "++trainer.env.X=it's",
    ],
)
def test_a_variable_on_the_command_line_is_taken_as_typed(program: Program, word: str) -> None:
    """Cases 24 and 25."""
    assert program.run("search.max_trials=1", word) == 0
    assert program.requests[0].program.env["X"] == word.partition("=")[2]


@pytest.mark.parametrize("value", ["mlx5_0:1,mlx5_3:1", "/p/epoch=9-step=1.ckpt", "调优"])
def test_a_quoted_variable_on_the_command_line(program: Program, value: str) -> None:
    """Cases 24 and 25: what the answer to the unquoted one says to type."""
    assert program.run("search.max_trials=1", f"+trainer.env.X='{value}'") == 0
    assert program.requests[0].program.env["X"] == value


def test_an_unreadable_override_says_what_to_type(program: Program) -> None:
    """Cases 24 and 25, where a value need not be text: the answer can be pasted as it is."""
    program.write_model()
    folder = program.folder / "my"
    with pytest.raises(UserError) as told:
        compose_config(["model=toy", "+model.base.load=/p/it's=9,b.ckpt"], folder)
    (word,) = shlex.split(str(told.value).partition("for the shell: ")[2])
    data = compose_config(["model=toy", word], folder).data
    assert data["model"]["base"]["load"] == "/p/it's=9,b.ckpt"


def test_a_key_of_the_users_own_is_added_with_a_plus(program: Program) -> None:
    program.write_model()
    with pytest.raises(UserError, match=r"type \+model\.dims\.depth=\.\.\."):
        compose_config(["model=toy", "model.dims.depth=3"], program.folder / "my")


def test_a_value_in_the_environment_is_found(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 37: nothing of it is left when Ray is told."""
    monkeypatch.setenv("HEAD_NODE", "10.0.0.7")
    program.model["cluster"] |= {
        "address": "${oc.env:HEAD_NODE}:6379",
        "wait_for_devices_s": "${deadlines.start_s}",
        "nodes_per_trial": "${.devices_per_trial}",
    }
    program.write_model()
    for word in ("study.name=toy", "cluster.address=${oc.env:HEAD_NODE}:6379"):
        cluster = compose_config(["model=toy", word], program.folder / "my").config.cluster
        assert cluster.address == "10.0.0.7:6379"
        assert (cluster.wait_for_devices_s, cluster.nodes_per_trial) == (600.0, 2)


def test_a_value_that_is_not_there_is_named(program: Program) -> None:
    """Case 37."""
    program.write_model()
    with pytest.raises(UserError, match="NOT_THERE"):
        compose_config(["model=toy", "cluster.address=${oc.env:NOT_THERE}"], program.folder / "my")


CHOICES: dict[str, list[Any]] = {
    "switch": ["on", "off", "yes", "no", "y", "n"],
    "rate": [1e-4, 5e-5, 1.0],
    "split": [[2, 6], [4, 4]],
    "text": ["1e-4", "010", "1:30", "null", "true", ""],
    "mixed": [1, "1", True, 1.5, {"a": [1]}],
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_keep_their_types_on_every_way(program: Program, name: str) -> None:
    """Cases 30, 31 and 32: file, database, journal, argv, export, and over a resume."""
    choices = CHOICES[name]
    program.model["space"] = {"parameters": {name: {"choices": choices}}}
    program.model["trainer"]["command"] = f"train --{name} {{{name}}} --steps {{steps}}"

    def behave(values: Values, request: object) -> Any:
        return ran(0.5 if values[name] == written(choices[-1]) else 1.0)

    program.behave = behave
    assert program.run("search.max_trials=1") == 0
    assert program.run("search.max_trials=9") == 0
    assert sorted(typed(t["parameters"][name]) for t in program.trials) == sorted(
        map(typed, choices)
    )
    assert sorted(values_of(r)[name] for r in program.requests) == sorted(map(written, choices))
    text = (program.study / "best.yaml").read_text(encoding="utf-8")
    for read in (yaml.safe_load(text), OmegaConf.to_container(OmegaConf.create(text))):
        assert isinstance(read, dict)
        assert typed(read["parameters"][name]) == typed(choices[-1])


def typed(value: Any) -> str:
    """Tells 1, 1.0, true and "1" apart."""
    return f"{type(value).__name__} {json.dumps(value)}"


def written(value: Any) -> str:
    """As it stands on a command line."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("number", CHOICES["rate"])
def test_a_number_on_the_command_line_is_one_for_the_program(number: float) -> None:
    """Case 31: `1e-05` is what Python prints, and what argparse and C read."""
    assert float(written(number)) == number
