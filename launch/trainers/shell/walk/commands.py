"""One simple command: expanded, and then done, answered, noted as a launch, or skipped."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Simple, Word
from launch.trainers.shell.launchers import WRAPPERS
from launch.trainers.shell.walk.answering import ANSWERED
from launch.trainers.shell.walk.declarations import DECLARING, assign, declare
from launch.trainers.shell.walk.launch_notes import launch_of
from launch.trainers.shell.walk.other_shells import is_shell, run_shell
from launch.trainers.shell.walk.own_commands import BUILTINS
from launch.trainers.shell.walk.redirections import redirected
from launch.trainers.shell.walk.skipping import output_of, skip
from launch.trainers.shell.words.values import Text

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution


def run_simple(execution: Execution, command: Simple) -> None:
    """A simple command; its status is the shell's afterwards. Raises LeaveError."""
    execution.substitution_status = 0
    first = command.words[0] if command.words else None
    if isinstance(first, Word) and first.plain in DECLARING:
        run = partial(declare, execution, first.plain, command.words[1:], command.line)
        redirected(execution, command.redirections, run)
        return
    words = execution.expansion.words(word for word in command.words if isinstance(word, Word))
    if words:
        run = partial(_with_environment, execution, words, command)
    else:
        for assignment in command.assignments:
            assign(execution, assignment)
        execution.shell.status = execution.substitution_status
        run = partial(_pass_on, execution, command)
    redirected(execution, command.redirections, run)


def _with_environment(execution: Execution, words: list[Text], command: Simple) -> None:
    """`name=value command`: the variable is there for the command alone."""
    shell = execution.shell
    before = {
        item.name: (
            shell.variables.get(item.name),
            item.name in shell.exported,
            item.name in shell.own,
        )
        for item in command.assignments
    }
    steps = list(shell.steps)
    for assignment in command.assignments:
        assign(execution, assignment)
        shell.exported.add(assignment.name)
        shell.own.add(assignment.name)
    shell.steps = steps
    dispatch(execution, words, command)
    shell = execution.shell
    for name, (value, was_exported, was_own) in before.items():
        if value is None:
            shell.variables.pop(name, None)
        else:
            shell.variables[name] = value
        if not was_exported:
            shell.exported.discard(name)
        if not was_own:
            shell.own.discard(name)


def _pass_on(execution: Execution, command: Simple) -> None:
    """`$(< file)` prints the file."""
    is_reading = any(r.operator == "<" for r in command.redirections)
    if is_reading and not command.assignments and execution.stdin is not None:
        execution.emit(execution.stdin.read())


def dispatch(execution: Execution, words: list[Text], command: Simple) -> None:
    """A command whose words are expanded. Raises LeaveError."""
    name, arguments = str(words[0]), words[1:]
    shell = execution.shell
    if name not in ("exit", "return"):
        shell.status = 0
    if name in shell.functions:
        execution.call(shell.functions[name], tuple(arguments), command.line)
    elif name in BUILTINS:
        BUILTINS[name](execution, arguments, command)
    elif launch := launch_of(words, execution, command.line):
        execution.journal.launches.append(launch)
        execution.emit(output_of(words, command, None))
    elif name in WRAPPERS and (inner := _inner(words)):
        dispatch(execution, inner, command)
    elif is_shell(name):
        run_shell(execution, words, command)
    else:
        ANSWERED.get(posixpath.basename(name), skip)(execution, words, command)


def _inner(words: list[Text]) -> list[Text]:
    """The command that `nohup`, `env` and the like start, where it is a shell or its script."""
    return next((words[at:] for at in range(1, len(words)) if is_shell(str(words[at]))), [])
