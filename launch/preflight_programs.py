"""Whether the programs and scripts that a sweep needs are there, without starting one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from autotune.config.schema import TrainerConfig
from autotune.errors import UserError
from autotune.ports import Trainer
from autotune.space.point import plain
from launch.environment import NO_SUCH_PROGRAM, no_interpreter
from launch.setup_environment import setup_paths
from launch.trainers.command import CommandTrainer

_PATH = "PATH"


def look_at_programs(
    config: TrainerConfig,
    trainer: Trainer,
    env: Mapping[str, str],
    *,
    is_set_up: bool,
    is_local: bool,
) -> list[str]:
    """What may keep every trial from its start; empty where all is well.

    env: of the trials, without the trainer's own. is_set_up: it holds what `trainer.setup` adds.
    is_local: trials run on this host. Raises UserError for what would end the sweep, or each trial.
    """
    setup_paths(config.setup)
    knows_path = is_set_up or not config.setup
    notes = _look_at_interpreter(config.python, trainer, env, knows_path=knows_path)
    if isinstance(trainer, CommandTrainer):
        notes += _look_at_command(trainer, env, knows_path=knows_path, is_local=is_local)
    return notes


def why_not_started(program: str, env: Mapping[str, str], cwd: Path) -> str | None:
    """Why a program would not start, as far as its file tells; None where it would.

    It is looked for as `subprocess.Popen` does: a name without a slash on the PATH of `env`.
    """
    folders = [""] if "/" in program else os.get_exec_path(dict(env))
    found = [file for folder in folders if (file := cwd / folder / program).exists()]
    if any(file.is_file() and os.access(file, os.X_OK) for file in found):
        return None
    if not found:
        return NO_SUCH_PROGRAM if "/" in program else f"{NO_SUCH_PROGRAM} on the PATH"
    is_file = found[0].is_file()
    return f"{found[0]} {'may not be executed (chmod +x makes it so)' if is_file else 'is no file'}"


def _look_at_interpreter(
    python: str | None, trainer: Trainer, env: Mapping[str, str], *, knows_path: bool
) -> list[str]:
    """`trainer.python`, which is asked on this host, wherever trials run."""
    if not python:
        return []
    if why := why_not_started(python, env, Path()):
        if knows_path or "/" in python:
            raise no_interpreter(python, why, trainer.needs)
        return [_perhaps_set_up("trainer.python", python)]
    is_relative = "/" in python and not Path(python).is_absolute()
    if is_relative and not isinstance(trainer, CommandTrainer):  # whose command shows it
        raise UserError(
            f"trainer.python={python} is looked for where each trial runs, which is not here; "
            f"give the whole path: trainer.python={Path(python).absolute()}"
        )
    return []


def _look_at_command(
    trainer: CommandTrainer, env: Mapping[str, str], *, knows_path: bool, is_local: bool
) -> list[str]:
    """The working directory, and the program where every trial has the same."""
    program = trainer.program
    if not trainer.cwd.is_dir():
        fault = f"trainer.cwd={trainer.cwd} is no folder"
        advice = (
            "give the one in which the program runs, such as trainer.cwd=~/my_program, or null "
            "for here"
        )
    elif program is not None and (why := _why_not(trainer, program, env)):
        if "/" not in program and not knows_path:
            return [_perhaps_set_up("trainer.command", program)]
        fault = f"trainer.command starts {program} in {trainer.cwd}, and {why}"
        advice = "begin it with the whole path of a program, or with {python}"
    else:
        return []
    if is_local:
        raise UserError(f"{fault}; {advice}")
    return [f"{fault}, on this host; trials need it on every node of the cluster"]


def _why_not(trainer: CommandTrainer, program: str, env: Mapping[str, str]) -> str | None:
    path = trainer.env.get(_PATH)
    if path is None or "/" in program:
        return why_not_started(program, env, trainer.cwd)
    if path.names:
        return None  # each trial may have another PATH
    return why_not_started(program, {**env, _PATH: plain(path.value(trainer.facts))}, trainer.cwd)


def _perhaps_set_up(key: str, program: str) -> str:
    return (
        f"{key}: {program} is not on the PATH here; the sweep looks for it again after "
        "trainer.setup, and does not begin where it is not there either"
    )
