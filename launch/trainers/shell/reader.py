"""Reads a launch script without running it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from autotune.errors import UserError
from launch.trainers.shell.grammar.parser import parse_script
from launch.trainers.shell.grammar.scanner import SyntaxFaultError
from launch.trainers.shell.reading import Ended, ScriptReading, Sourced
from launch.trainers.shell.walk.execution import Execution
from launch.trainers.shell.walk.journal import Journal
from launch.trainers.shell.words.flow import LeaveError
from launch.trainers.shell.words.state import Shell, Variable
from launch.trainers.shell.words.surroundings import Surroundings
from launch.trainers.shell.words.values import Text

_OF_BASH = {"BASH_VERSION": "5.2.15(1)-release", "BASH": "/bin/bash", "OPTIND": "1"}


def _nothing(path: str) -> str | None:
    return None


def read_script(
    text: str,
    name: str,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    exists: Callable[[str], bool] | None = None,
    *,
    folder: str = ".",
    read: Callable[[str], str | None] = _nothing,
) -> ScriptReading:
    """What a bash script would launch, and with which environment.

    text: the script's. name: what `$0` is, the script as it is started. environment: variables
    that are set before; where the script would find a variable out by running something, the one
    given here counts. exists: whether a path is there; None: nobody knows. folder: the working
    directory in which it is started, which `pwd` answers. read: the text of a file that the
    script sources or reads; None where it is not to be read.

    Nothing is run, and no file is touched but through `exists` and `read`. Raises UserError for
    a script that bash would not understand either, or that is not read.
    """
    if "\r\n" in text:
        raise UserError(
            f"{name} has Windows line ends, with which bash does not run it; "
            f"type: sed -i 's/\\r$//' {shlex.quote(name)}"
        )
    given = dict(environment or {})
    surroundings = Surroundings(given, folder, exists, read)
    shell = Shell(
        variables={key: Text.of(value) for key, value in (_OF_BASH | given).items()},
        exported=set(given),
        arguments=tuple(Text.of(argument) for argument in arguments),
        folder=Text.of(folder),
        answers=given,
    )
    journal = Journal()
    execution = Execution(name, surroundings, journal, shell)
    ended: Ended | None = None
    try:
        execution.run(parse_script(text))
    except SyntaxFaultError as fault:
        raise UserError(
            f"{name} line {fault.line}, {_line(text, fault.line)!r}: {fault.what}; mend the line "
            f"(bash -n {shlex.quote(name)} tells whether bash understands it)"
        ) from None
    except RecursionError:
        raise UserError(f"{name} nests brackets or commands too deeply to be read") from None
    except LeaveError as leave:
        ended = Ended(leave.line, leave.why, journal.said)
    shell = execution.shell
    return ScriptReading(
        name=name,
        exported={key: str(value) for key, value in shell.environment().items()},
        variables={key: _shown(value) for key, value in sorted(shell.variables.items())},
        sourced=tuple(step.path for step in shell.steps if isinstance(step, Sourced)),
        written=dict(journal.written),
        skipped=tuple(journal.skipped),
        launches=tuple(journal.launches),
        ended=ended,
    )


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1].strip() if number <= len(lines) else ""


def _shown(value: Variable) -> str:
    return str(value) if isinstance(value, Text) else shlex.join(map(str, value.values))
