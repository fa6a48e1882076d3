"""`bash -c text` and `bash script`."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.parser import parse_script
from launch.trainers.shell.grammar.scanner import SyntaxFaultError
from launch.trainers.shell.grammar.syntax import Simple
from launch.trainers.shell.walk.skipping import output_of
from launch.trainers.shell.words.values import Text

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")


def is_shell(name: str) -> bool:
    """Whether a command is a shell or a script of one."""
    return posixpath.basename(name) in _SHELLS or name.endswith(".sh")


def run_shell(execution: Execution, words: list[Text], command: Simple) -> None:
    """`bash -c text` is gone through; another script is not."""
    arguments = words[1:] if not str(words[0]).endswith(".sh") else words
    while arguments and str(arguments[0]).startswith("-"):
        option = str(arguments.pop(0))
        if option.startswith("-") and not option.startswith("--") and "c" in option and arguments:
            _run_text(execution, arguments, command)
            return
        if option in ("-o", "-O") and arguments:
            arguments.pop(0)
    script = str(arguments[0]) if arguments else None
    execution.journal.skip(command.line, command.source, script)
    execution.shell.status = None
    execution.emit(output_of(words, command, None))


def _run_text(execution: Execution, arguments: list[Text], command: Simple) -> None:
    try:
        statements = parse_script(str(arguments[0]), command.line)
    except SyntaxFaultError:
        execution.journal.skip(command.line, command.source)
        execution.shell.status = None
        return
    shell = execution.shell.fork()
    shell.variables = {n: v for n, v in shell.variables.items() if n in shell.exported}
    shell.functions = {}
    shell.options = set()
    shell.arguments = tuple(arguments[2:])
    execution.in_subshell(partial(execution.run, statements), shell)
