"""Where commands read from and print to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import ProcessSubstitution, Redirection
from launch.trainers.shell.walk.streams import Stream
from launch.trainers.shell.words.values import Text, UndeterminedError, unknown_text

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_INPUTS = ("<", "<<", "<<-", "<<<")
_OUTPUTS = (">", ">>", ">|", "&>", "&>>", ">&", "<>")
_NOWHERE = ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty")


def redirected(
    execution: Execution, redirections: Sequence[Redirection], run: Callable[[], object]
) -> None:
    """Runs a command with its redirections; what it prints into a file is noted."""
    stdin = execution.stdin
    target: Redirection | None = None
    for redirection in redirections:
        if redirection.operator in _INPUTS and redirection.descriptor in ("", "0"):
            stdin = _stdin(execution, redirection)
        elif redirection.operator in _OUTPUTS and redirection.descriptor in ("", "1"):
            target = redirection
    first_launch = len(execution.journal.launches)
    with execution.reading(stdin):
        if target is None:
            run()
            return
        printed = execution.captured(run)
    if target.operator == ">&" and target.target.source in ("2", "1", "-"):
        if target.target.source == "1":
            execution.emit(printed)
        execution.journal.said = str(printed).strip() or execution.journal.said
    else:
        _store(execution, target, printed, first_launch)


def _store(
    execution: Execution, redirection: Redirection, printed: Text, first_launch: int
) -> None:
    """Notes what goes into a file: the log of a launch, or the text of a file."""
    journal = execution.journal
    match redirection.target.parts:
        case (ProcessSubstitution(body=body),):
            first_output = len(journal.outputs)
            with execution.reading(Stream(printed)):
                execution.in_subshell(partial(execution.run, body))
            for path in journal.outputs[first_output:]:
                journal.log(first_launch, path)
            return
    path = _path(execution, execution.expansion.text(redirection.target))
    if path in _NOWHERE:
        return
    journal.log(first_launch, path)
    if len(journal.launches) == first_launch:
        journal.write(path, printed, redirection.operator in (">>", "&>>"))


def file_text(execution: Execution, path: Text) -> Text | None:
    """What a file holds, as far as it is known or may be read."""
    try:
        place = execution.shell.path(path.known())
    except UndeterminedError:
        return None
    if place in execution.journal.written:
        return Text.of(execution.journal.written[place])
    text = execution.surroundings.read(place)
    return None if text is None else Text.of(text)


def _stdin(execution: Execution, redirection: Redirection) -> Stream:
    target, operator = redirection.target, redirection.operator
    match target.parts:
        case (ProcessSubstitution(body=body),):
            run = partial(execution.in_subshell, partial(execution.run, body))
            return Stream(execution.captured(run))
    text = execution.expansion.text(target)
    if operator == "<<<":
        return Stream(text + Text.of("\n"))
    if operator != "<":
        return Stream(text)
    held = file_text(execution, text)
    if held is None:
        held = unknown_text(f"$(< {text})", target.line, "the file is not read")
    return Stream(held)


def _path(execution: Execution, text: Text) -> str:
    try:
        return execution.shell.path(text.known())
    except UndeterminedError:
        return str(text)
