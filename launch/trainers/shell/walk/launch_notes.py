"""A command that starts a training program, as it is noted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from launch.trainers.shell.arguments import is_option
from launch.trainers.shell.launchers import (
    LAYOUT_OPTIONS,
    LAYOUT_VARIABLES,
    WITHOUT_EFFECT,
    divided,
)
from launch.trainers.shell.reading import Doubt, LaunchCommand, plain_name
from launch.trainers.shell.words.values import Text, live_sources

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def launch_of(words: Sequence[Text], execution: Execution, line: int) -> LaunchCommand | None:
    """The launch that words make, None where they start no training program."""
    texts = [str(word) for word in words]
    division = divided(texts)
    if division is None:
        return None
    shell = execution.shell
    environment = shell.environment()
    wrapper = [text for text in texts[: division.wrapper_end] if text not in WITHOUT_EFFECT]
    if wrapper[:1] == ["env"] and all(_ASSIGNED.fullmatch(text) for text in wrapper[1:]):
        given = (match for text in wrapper[1:] if (match := _ASSIGNED.fullmatch(text)))
        environment |= {match[1]: Text.of(match[2]) for match in given}
        wrapper = []
    launcher_words = texts[division.launcher_end : division.program]
    if division.is_module:
        launcher_words = [word for word in launcher_words if word not in ("-m", "--module")]
    doubts = [
        *_doubts_of_words(words[: division.program], is_layout=True),
        *_doubts_of_words(words[division.program :], is_layout=False),
        *_doubts_of_environment(environment),
        *_doubts("the working directory", shell.folder),
        *(doubt for path in shell.sourced for doubt in _doubts(f"source {path}", path)),
    ]
    texts_with_live = (*words, *environment.values(), shell.folder, *shell.sourced)
    live = shell.live.union(*map(live_sources, texts_with_live))
    return LaunchCommand(
        line=line,
        launcher=division.launcher,
        launcher_command=tuple(texts[division.wrapper_end : division.launcher_end]),
        launcher_arguments=tuple(launcher_words),
        program=texts[division.program],
        arguments=tuple(texts[division.program + 1 :]),
        is_module=division.is_module,
        wrapper=tuple(wrapper),
        environment={name: str(value) for name, value in environment.items()},
        folder=str(shell.folder),
        steps=tuple(shell.steps),
        live=frozenset(live),
        doubts=tuple(doubts),
        condition=tuple(execution.journal.tests),
    )


def _doubts_of_words(words: Sequence[Text], is_layout: bool) -> Iterator[Doubt]:
    place = "the program" if not is_layout else "the launcher"
    for word in words:
        text = str(word)
        option = text.partition("=")[0]
        if is_option(text):
            place = option
        decides_layout = is_layout and plain_name(place) in LAYOUT_OPTIONS
        yield from _doubts(place, word, decides_layout)


def _doubts_of_environment(environment: dict[str, Text]) -> Iterator[Doubt]:
    for name, value in environment.items():
        for doubt in _doubts(f"the exported {name}", value, name in LAYOUT_VARIABLES):
            yield replace(doubt, export=name)


def _doubts(place: str, text: Text, is_layout: bool = False) -> Iterator[Doubt]:
    for unknown in text.unknown:
        if not unknown.is_live:
            cause = unknown.origin
            variable = cause.variable or unknown.variable
            yield Doubt(place, variable, cause.line, cause.source, cause.why, is_layout)
