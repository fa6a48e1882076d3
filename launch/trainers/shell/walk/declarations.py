"""Assignments, `export`, `declare`, `local` and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Assignment, Literal, Word
from launch.trainers.shell.reading import Sourced
from launch.trainers.shell.words.arithmetic import ArithmeticFaultError, evaluate
from launch.trainers.shell.words.braces import brace_expanded
from launch.trainers.shell.words.state import Array, Key
from launch.trainers.shell.words.values import Text, UndeterminedError, Unknown

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

DECLARING = ("export", "declare", "typeset", "local", "readonly")
"""Commands whose arguments may be assignments."""


def assign(execution: Execution, assignment: Assignment, is_associative: bool = False) -> None:
    """`name=value` in all its forms."""
    shell, expansion = execution.shell, execution.expansion
    name, line = assignment.name, assignment.line
    old = shell.variables.get(name)
    if isinstance(assignment.value, tuple):
        is_associative |= isinstance(old, Array) and old.is_associative
        kept = _as_array(old) if assignment.is_appended else None
        try:
            array = expansion.array(assignment.value, kept, is_associative)
        except (UndeterminedError, ArithmeticFaultError):
            why = "a key of the array is not known"
            array = Array({0: Text((Unknown(assignment.source, line, why, name),))})
        shell.set(name, array, line)
        return
    value = expansion.assigned(assignment.value)
    variables = expansion.variables(line)
    key: Key | None = None
    if assignment.index is not None:
        try:
            is_by_text = isinstance(old, Array) and old.is_associative
            index = expansion.text(assignment.index).known()
            key = index if is_by_text else evaluate(index, variables)
        except (UndeterminedError, ArithmeticFaultError):
            value = Text((Unknown(assignment.source, line, "its index is not known", name),))
    if assignment.is_appended:
        before = variables.text(name, key)
        possible = variables.possible(name) if before is None else None
        value = (before or Text(() if possible is None else (possible,))) + value
    variables.set(name, value, key)


def declare(execution: Execution, kind: str, words: Sequence[Word | Assignment], line: int) -> None:
    """`export`, `declare`, `typeset`, `local` and `readonly`."""
    declaration = _Declaration(execution, kind, line)
    for word in words:
        if isinstance(word, Assignment) and not _has_braces(word):
            declaration.assigned(word)
            continue
        for text in execution.expansion.words([_as_word(word)]):
            declaration.given(text)
    execution.shell.status = 0


class _Declaration:
    """One use of a declaring command, its arguments one after the other."""

    def __init__(self, execution: Execution, kind: str, line: int) -> None:
        self._execution = execution
        self._shell = execution.shell
        self._kind = kind
        self._line = line
        self._options = ""

    def assigned(self, assignment: Assignment) -> None:
        """`name=value`, not split."""
        self._make_local(assignment.name)
        assign(self._execution, assignment, is_associative="A" in self._options)
        self._settle(assignment.name)

    def given(self, text: Text) -> None:
        """An option, a name, or `name=value` that came of an expansion."""
        given = str(text)
        name, mark, _ = given.partition("=")
        if given.startswith(("-", "+")):
            self._options += given
        elif not name.isidentifier():
            # Whatever it is: it may set any variable.
            here = str(self._shell.folder)
            self._shell.unread.append(Sourced(f"{self._kind} {given}", (), here, self._line))
        else:
            self._make_local(name)
            if mark:
                first, *rest = text.pieces
                value = Text.of(str(first)[len(name) + 1 :], *rest)
                self._shell.set(name, value, self._line)
            else:
                self._name(name)
            self._settle(name)

    def _name(self, name: str) -> None:
        if "A" in self._options:
            self._shell.variables.setdefault(name, Array({}, is_associative=True))
        elif "a" in self._options:
            self._shell.variables.setdefault(name, Array({}))
        elif self._is_local:
            self._shell.variables.pop(name, None)

    @property
    def _is_local(self) -> bool:
        if not self._execution.is_in_function or "g" in self._options:
            return False
        return self._kind in ("local", "declare", "typeset")

    def _make_local(self, name: str) -> None:
        if self._is_local:
            self._execution.make_local(name)

    def _settle(self, name: str) -> None:
        """Exports the variable, or makes it stay here."""
        unread = "".join(letter for letter in self._options if letter in "inul")
        if unread and self._kind != "export" and name in self._shell.variables:
            why = f"{self._kind} -{unread} is not read"
            text = Text((Unknown(f"${{{name}}}", self._line, why, name),))
            self._shell.set(name, text, self._line)
        if self._kind == "export" and "n" in self._options:
            self._shell.exported.discard(name)
        elif (self._kind == "export" and "f" not in self._options) or "x" in self._options:
            self._shell.export(name, self._line)


def _has_braces(assignment: Assignment) -> bool:
    value = assignment.value
    return isinstance(value, Word) and len(brace_expanded(value)) > 1


def _as_word(word: Word | Assignment) -> Word:
    """An assignment with braces is a word like others, which they make several of."""
    if isinstance(word, Word):
        return word
    assert isinstance(word.value, Word)
    mark = "+=" if word.is_appended else "="
    parts = (Literal(f"{word.name}{mark}"), *word.value.parts)
    return Word(parts, word.source, word.line)


def _as_array(old: Text | Array | None) -> Array | None:
    return Array({0: old}) if isinstance(old, Text) else old
