"""What a script launches, in which folder and with which environment: as bash does it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch.trainers.shell import LaunchCommand, ScriptReading, read_script

from .oracle import Bash
from .scripts import SCRIPTS, Script

HOME = {"HOME": "/home/user", "LANG": "C.UTF-8"}


def reading_of(script: Script, folder: Path) -> ScriptReading:
    return read_script(
        script.text,
        script.name,
        script.arguments,
        {**HOME, **script.environment},
        os.path.exists,
        folder=str(folder),
    )


def argv(launch: LaunchCommand) -> tuple[str, ...]:
    launcher = (Path(launch.launcher_command[0]).name, *launch.launcher_command[1:])
    module = ("-m",) if launch.is_module else ()
    return (
        *launcher,
        *launch.launcher_arguments,
        *module,
        launch.program,
        *launch.arguments,
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_launches_are_those_of_bash(name: str, bash: Bash) -> None:
    script = SCRIPTS[name]
    run = bash.run(script.text, script.arguments, script.environment, script.name)
    launches = reading_of(script, bash.folder).launches
    assert [argv(launch) for launch in launches] == [item.argv for item in run.launches], run.stderr
    given = {**HOME, **script.environment}.items()
    added = [dict(launch.environment.items() - given) for launch in launches]
    assert added == [item.environment for item in run.launches]
    assert [launch.folder for launch in launches] == [item.folder for item in run.launches]
    assert run.launches
    assert [launch.doubts for launch in launches] == [()] * len(launches)
