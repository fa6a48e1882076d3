"""Commands that are not run: what is noted of them, and what is known of what they print."""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Simple
from launch.trainers.shell.reading import Prepared
from launch.trainers.shell.walk.answers import is_harmless
from launch.trainers.shell.words.values import Text, Unknown

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_SILENT = frozenset(
    (
        "chgrp",
        "chmod",
        "chown",
        "cp",
        "disown",
        "install",
        "kill",
        "ln",
        "mkdir",
        "mkfifo",
        "mv",
        "pkill",
        "renice",
        "rm",
        "rmdir",
        "sleep",
        "sync",
        "touch",
        "unlink",
    )
)
"""Commands that print nothing and are expected to succeed."""

_PREPARING = ("conda", "mamba", "micromamba", "module")
"""Commands that change the environment of those after them."""


def skip(execution: Execution, words: list[Text], command: Simple) -> None:
    """Notes a command that is not run."""
    name = posixpath.basename(str(words[0]))
    stdin = execution.stdin.read() if execution.stdin is not None else None
    if name in _PREPARING:
        execution.shell.steps.append(Prepared(tuple(map(str, words)), command.line))
        execution.shell.status = 0
        return
    if not is_harmless([str(word) for word in words]):
        execution.journal.skip(command.line, command.source)
    if name in ("mkdir", "touch"):
        for word in words[1:]:
            if word.is_known and not str(word).startswith("-") and execution.shell.folder.is_known:
                execution.shell.made.add(execution.shell.path(str(word)))
    if name in _SILENT:
        execution.shell.status = 0
        return
    execution.shell.status = None
    execution.emit(output_of(words, command, stdin))


def output_of(words: list[Text], command: Simple, stdin: Text | None) -> Text:
    """What a command that is not run prints: unknown, live where it may be run later."""
    texts = [str(word) for word in words]
    own = shlex.join(texts)
    is_live = is_harmless(texts) and all(word.is_known for word in words)
    source = f"$({own})"
    if stdin is not None and stdin.pieces:
        match stdin.pieces:
            case (Unknown(source=before, is_live=was_live),) if before.startswith("$("):
                source, is_live = f"$({before[2:-1]} | {own})", is_live and was_live
            case _:
                is_live = False
        for unknown in stdin.unknown:
            if not unknown.is_live:
                return Text((unknown.derived(source, unknown.variable),))
    return Text((Unknown(source, command.line, "commands are not run", is_live=is_live),))
