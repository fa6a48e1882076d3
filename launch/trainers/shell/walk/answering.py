"""Commands that are not run either, but whose output is known from what they are given."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Simple
from launch.trainers.shell.walk.answers import ANSWERS, READS_FILES, READS_INPUT
from launch.trainers.shell.walk.redirections import file_text
from launch.trainers.shell.walk.skipping import output_of, skip
from launch.trainers.shell.words.values import Text, UndeterminedError

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution


def _resolve(execution: Execution, words: list[Text], command: Simple) -> None:
    """`realpath` and `readlink -f`, as if there were no links."""
    paths = [word for word in words[1:] if not str(word).startswith("-")]
    is_link = str(words[0]).endswith("readlink") and len(paths) == len(words) - 1
    try:
        resolved = [execution.shell.path(path.known()) for path in paths]
    except UndeterminedError:
        is_link = True
    if is_link or len(paths) != 1:
        skip(execution, words, command)
    else:
        execution.emit(Text.of(resolved[0], "\n"))


def _tee(execution: Execution, words: list[Text], command: Simple) -> None:
    """Prints what it reads, into files too."""
    arguments = words[1:]
    text = execution.stdin.read() if execution.stdin is not None else Text()
    is_appended = any(str(argument) in ("-a", "--append") for argument in arguments)
    for argument in arguments:
        if str(argument).startswith("-"):
            continue
        place = str(argument)
        if argument.is_known and execution.shell.folder.is_known:
            place = execution.shell.path(place)
        execution.journal.outputs.append(place)
        execution.journal.write(place, text, is_appended)
    execution.emit(text)


def _cat(execution: Execution, words: list[Text], command: Simple) -> None:
    files = [word for word in words[1:] if not str(word).startswith("-") or str(word) == "-"]
    if len(files) < len(words) - 1:
        skip(execution, words, command)
        return
    stdin = execution.stdin
    execution.shell.status = 0
    if not files:
        execution.emit(stdin.read() if stdin is not None else output_of(words, command, None))
        return
    texts = [file_text(execution, file) for file in files]
    if any(text is None for text in texts):
        execution.shell.status = None
        execution.emit(output_of(words, command, None))
        return
    for text in texts:
        execution.emit(text or Text())


def _answer(execution: Execution, words: list[Text], command: Simple) -> None:
    """A command whose output can be worked out."""
    name = posixpath.basename(str(words[0]))
    arguments = words[1:]
    text = execution.stdin.read() if execution.stdin is not None else None
    if name in READS_FILES and text is None and arguments:
        text = file_text(execution, arguments[-1])
        arguments = arguments[:-1]
    if text is None:
        text = Text() if name not in READS_INPUT else None
    if text is not None:
        try:
            answer = ANSWERS[name]([a.known() for a in arguments], text.known())
        except UndeterminedError:
            answer = None
        if answer is not None:
            execution.shell.status = 0
            execution.emit(Text.of(answer))
            return
    execution.shell.status = None
    stdin = text if arguments == words[1:] else None
    execution.emit(output_of(words, command, stdin))


ANSWERED: Mapping[str, Callable[[Execution, list[Text], Simple], None]] = {
    "cat": _cat,
    "readlink": _resolve,
    "realpath": _resolve,
    "tee": _tee,
    **dict.fromkeys(ANSWERS, _answer),
}
"""By name."""
