"""Programs that are not there are told of before a sweep, not by its first trial."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from autotune.config.schema import Config
from autotune.config.typed import build
from autotune.errors import UserError
from launch.preflight_programs import look_at_programs, why_not_started
from launch.trainers.registry import make_trainer
from launch.trainers.sources import Sources

Look = Callable[..., list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`tool` that runs, `text` that does not, and `bin/tool2`."""
    made = tmp_path / "my program 调优"
    (made / "bin").mkdir(parents=True)
    for name in ("tool", "bin/tool2"):
        (made / name).write_text("#!/bin/sh\n")
        (made / name).chmod(0o755)
    (made / "text").write_text("no program\n")
    return made


@pytest.fixture
def look(folder: Path) -> Look:
    def of(
        keys: Mapping[str, Any],
        *,
        path: str | None = None,
        is_set_up: bool = False,
        is_local: bool = True,
    ) -> list[str]:
        trainer = {"name": "command", "cwd": str(folder), "command": "sh {x} {steps}", **keys}
        data = {
            "study": {"name": "s", "dir": "s"},
            "model": {"name": "m"},
            "space": {},
            "trainer": trainer,
        }
        config = build(Config, data)
        env = {"PATH": path or os.environ["PATH"]}
        made = make_trainer(config, Sources(None))
        return look_at_programs(config.trainer, made, env, is_set_up=is_set_up, is_local=is_local)

    return of


@pytest.mark.parametrize(
    "command",
    ["sh {x} {steps}", "./tool {x} {steps}", "bin/tool2 {x} {steps}", "{python} {x} {steps}"],
)
def test_what_starts_is_not_spoken_of(look: Look, command: str) -> None:
    assert look({"command": command}) == []
    assert look({"command": command, "python": shutil.which("python3")}) == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"cwd": "/nope"}, r"trainer\.cwd=/nope is no folder; give the one in which"),
        ({"command": "/nope/prog {x} {steps}"}, "starts /nope/prog in .* there is no such program"),
        ({"command": "nope {x} {steps}"}, "starts nope in .* no such program on the PATH; begin"),
        ({"command": "./text {x} {steps}"}, r"my program 调优/text may not be executed \(chmod"),
        ({"command": "./bin {x} {steps}"}, "bin is no file"),
        ({"command": "tool {x} {steps}"}, "starts tool in .* no such program on the PATH"),
        ({"python": "/nope/python"}, r"trainer\.python=/nope/python does not run: there is no"),
        ({"python": "/etc/passwd"}, r"trainer\.python=/etc/passwd .* may not be executed"),
        ({"python": "nopython"}, r"trainer\.python=nopython .* no such program on the PATH"),
        ({"setup": ["/nope.sh"]}, r"trainer\.setup names /nope\.sh, and there is no such file"),
    ],
)
def test_what_cannot_start_is_refused(look: Look, keys: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        look(keys)
    with pytest.raises(UserError, match=message):
        look(keys, is_set_up=True)


@pytest.mark.parametrize(
    "command",
    [
        *("/nope/{x} {steps}", "{folder}/run {x} {steps}", "{x == 1:nope} sh {x} {steps}"),
        "./{x}.sh {steps}",
    ],
)
def test_what_depends_on_the_trial_is_left_to_it(look: Look, command: str) -> None:
    assert look({"command": command}) == []


def test_an_interpreter_that_only_we_find_from_here(
    look: Look, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    reference = {"name": "reference", "cwd": None, "command": None, "python": "./tool"}
    with pytest.raises(UserError) as error:
        look(reference)
    assert str(error.value).endswith(f"give the whole path: trainer.python={folder / 'tool'}")
    assert look({**reference, "python": str(folder / "tool")}) == []
    assert look({"python": "./tool"}) == []  # it stands in the command, where it is seen


def test_a_path_that_setup_makes_is_waited_for(look: Look, folder: Path) -> None:
    script = folder / "set_env.sh"
    script.touch()
    keys = {"setup": [str(script)], "command": "tool2 {x} {steps}"}
    (note,) = look(keys)
    assert "trainer.command: tool2 is not on the PATH here" in note
    (note,) = look({**keys, "command": "sh {x} {steps}", "python": "tool2"})
    assert "trainer.python: tool2 is not on the PATH here" in note
    assert look(keys, path=str(folder / "bin"), is_set_up=True) == []
    with pytest.raises(UserError, match="starts tool2"):
        look(keys, is_set_up=True)
    with pytest.raises(UserError, match="starts /nope/tool2"):
        look({**keys, "command": "/nope/tool2 {x} {steps}"})


def test_the_path_of_the_trainers_own_environment_counts(look: Look, folder: Path) -> None:
    keys = {"command": "tool2 {x} {steps}", "env": {"PATH": str(folder / "bin")}}
    assert look(keys) == []
    with pytest.raises(UserError, match="starts sh in"):
        look({**keys, "command": "sh {x} {steps}"})
    assert look({"command": "nope {x} {steps}", "env": {"PATH": "/opt/{x}"}}) == []


def test_what_is_missing_here_may_be_on_the_nodes_of_a_cluster(look: Look) -> None:
    (note,) = look({"cwd": "/nope"}, is_local=False)
    assert note == (
        "trainer.cwd=/nope is no folder, on this host; trials need it on every node of the cluster"
    )
    (note,) = look({"command": "/nope/prog {x} {steps}"}, is_local=False)
    assert "/nope/prog" in note
    with pytest.raises(UserError, match=r"trainer\.python=/nope"):  # it is asked on this host
        look({"python": "/nope"}, is_local=False)


@pytest.mark.parametrize("program", ["tool", "./tool", "bin/tool2", "tool2", "text", "./text", "x"])
@pytest.mark.parametrize("path", ["", "bin", "/bin:bin", "nope:/bin"])
def test_it_is_as_subprocess_finds_it(folder: Path, program: str, path: str) -> None:
    env = {"PATH": path}
    try:
        subprocess.run([program], cwd=folder, env=env, check=True)
        starts = True
    except OSError:
        starts = False
    assert (why_not_started(program, env, folder) is None) is starts
