"""What tests ask for, answered by a shell and its surroundings."""

from __future__ import annotations

import re
from collections.abc import Callable

from launch.trainers.shell.grammar.syntax import Word
from launch.trainers.shell.walk.conditions import Truth
from launch.trainers.shell.walk.journal import Journal
from launch.trainers.shell.words import patterns
from launch.trainers.shell.words.expansion import Expansion
from launch.trainers.shell.words.state import Array, Shell
from launch.trainers.shell.words.surroundings import Surroundings
from launch.trainers.shell.words.values import Text, UndeterminedError, unknown_text

_INDEXED = re.compile(r"(\w+)\[.*\]")


class ShellFacts:
    """`conditions.Facts` of one shell."""

    def __init__(
        self, shell: Shell, surroundings: Surroundings, journal: Journal, expansion: Expansion
    ) -> None:
        self._shell = shell
        self._surroundings = surroundings
        self._journal = journal
        self._expansion = expansion

    def exists(self, path: str) -> Truth:
        """Whether a path is there, or would be since the script makes it."""
        try:
            place = self._shell.path(path)
        except UndeterminedError:
            return None
        if place in self._shell.made or place in self._journal.written:
            return True
        return None if self._surroundings.exists is None else self._surroundings.exists(place)

    def is_set(self, name: str) -> Truth:
        """Whether a variable is set."""
        plain = _INDEXED.sub(r"\1", name)
        if plain in self._shell.variables:
            return True
        possible = self._expansion.variables(0).possible(plain)
        return None if possible is not None else False

    def text(self, word: Word) -> Text:
        """A word's text."""
        return self._expansion.text(word)

    def pattern(self, word: Word, escape: Callable[[str], str] = patterns.escaped) -> str:
        """A word as a pattern. Raises UndeterminedError."""
        return self._expansion.pattern(word, escape)

    def number(self, word: Word) -> int:
        """A word as arithmetic. Raises UndeterminedError, ArithmeticFaultError."""
        return self._expansion.number(word)

    def matched(self, groups: tuple[str, ...] | None) -> None:
        """`BASH_REMATCH`."""
        if groups is None:
            why = "the text that is matched is not known"
            self._shell.variables["BASH_REMATCH"] = unknown_text("${BASH_REMATCH}", 0, why)
        else:
            self._shell.variables["BASH_REMATCH"] = Array.of([Text.of(group) for group in groups])
