"""`${...}`: what its operators make of a value. After the GNU Bash manual, 3.5.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from launch.trainers.shell.grammar.syntax import Literal, Parameter, Word
from launch.trainers.shell.words import patterns
from launch.trainers.shell.words.flow import LeaveError, Leaving
from launch.trainers.shell.words.state import Key
from launch.trainers.shell.words.values import Text, UndeterminedError, Unknown
from launch.trainers.shell.words.variables import Variables

_DEFAULTS = ("-", ":-", "=", ":=", "?", ":?", "+", ":+")


@dataclass(frozen=True)
class Listed:
    """The elements of `$@`, `${a[*]}` and the like. is_joined: with `*`."""

    items: tuple[Text, ...]
    is_joined: bool


class Words(Protocol):
    """What operators need of the expansion of words."""

    def variables(self, line: int) -> Variables:
        """The variables."""
        ...

    def text(self, word: Word) -> Text:
        """A word's text, unsplit."""
        ...

    def pattern(self, word: Word) -> str:
        """A word as a pattern. Raises UndeterminedError."""
        ...

    def number(self, word: Word) -> int:
        """A word as arithmetic. Raises UndeterminedError, ArithmeticFaultError."""
        ...


def expanded(parameter: Parameter, words: Words) -> Text | Listed | Word:
    """What a parameter yields; a Word where that is to be expanded in its place.

    Raises LeaveError where the script ends there, UndeterminedError, ArithmeticFaultError.
    """
    if _is_list(parameter):
        return _of_list(parameter, words)
    variables = words.variables(parameter.line)
    name, key = parameter.name, _key(parameter, words)
    if parameter.prefix == "!":
        if parameter.operator in ("@", "*"):
            unknown = Unknown(parameter.source, parameter.line, "names of variables are not listed")
            return Text((unknown,))
        target = variables.text(name, key)
        name, key = (variables.unset(name) if target is None else target).known(), None
    value = variables.text(name, key)
    if parameter.prefix == "#":
        text = variables.unset(name) if value is None else value
        return Text.of(str(len(text.known())))
    if parameter.operator in _DEFAULTS:
        return _or_default(parameter, words, name, key, value)
    if value is None:
        value = variables.unset(name)
        if not value:
            return value
    return _operated(parameter, words, value)


def _is_list(parameter: Parameter) -> bool:
    if parameter.name in ("@", "*"):
        return True
    return parameter.index is not None and parameter.index.plain in ("@", "*")


def _key(parameter: Parameter, words: Words) -> Key | None:
    if parameter.index is None:
        return None
    if words.variables(parameter.line).is_associative(parameter.name):
        return words.text(parameter.index).known()
    return words.number(parameter.index)


def _or_default(
    parameter: Parameter, words: Words, name: str, key: Key | None, value: Text | None
) -> Text | Word:
    variables = words.variables(parameter.line)
    operator, argument = parameter.operator, parameter.arguments[0]
    possible = variables.possible(name) if value is None else None
    if possible is not None:
        return Text((_undecided(parameter, possible),))
    is_set = value is not None and not (operator[0] == ":" and _is_surely_empty(value))
    match operator[-1]:
        case "+":
            return argument if is_set else Text()
        case "-":
            return value if is_set and value is not None else argument
        case "=":
            if is_set and value is not None:
                return value
            default = words.text(argument)
            variables.set(name, default, key)
            return default
    if is_set and value is not None:
        return value
    said = str(words.text(argument)) or "it is not set"
    raise LeaveError(Leaving.EXIT, parameter.line, 1, why=f"{name}: {said}")


def _is_surely_empty(text: Text) -> bool:
    return not text.pieces


def _undecided(parameter: Parameter, possible: Unknown) -> Unknown:
    """`${name:-default}` where the machine decides about `name`."""
    parts = [part for word in parameter.arguments for part in word.parts]
    repeats_only_itself = all(
        isinstance(part, Literal) or (isinstance(part, Parameter) and part.name == parameter.name)
        for part in parts
    )
    if possible.is_live and repeats_only_itself:
        why, line = possible.why, parameter.line
        return Unknown(parameter.source, line, why, possible.variable, is_live=True)
    return possible.derived(parameter.source, possible.variable)


def _operated(parameter: Parameter, words: Words, value: Text) -> Text:
    operator = parameter.operator
    if not operator:
        return value
    if operator[0] == "@":
        why = f"the operator {operator} is not read"
        return Text((Unknown(parameter.source, parameter.line, why),))
    if operator == ":":
        return Text.of(_substring(value.known(), parameter, words))
    pattern = words.pattern(parameter.arguments[0])
    if operator[0] == "/":
        by = words.text(parameter.arguments[1]) if len(parameter.arguments) > 1 else Text()
        return Text.of(patterns.replaced(value.known(), pattern, by.known(), operator))
    text = value.known()
    match operator[0]:
        case "#":
            return Text.of(patterns.without_prefix(text, pattern, len(operator) == 2))
        case "%":
            return Text.of(patterns.without_suffix(text, pattern, len(operator) == 2))
    return Text.of(patterns.recased(text, pattern, operator))


def _substring(text: str, parameter: Parameter, words: Words) -> str:
    start, stop = _slice(parameter, words, len(text))
    return text[start:stop]


def _slice(parameter: Parameter, words: Words, length: int) -> tuple[int, int]:
    """Where `${name:offset:length}` begins and ends."""
    start = words.number(parameter.arguments[0])
    start = max(start + length, 0) if start < 0 else start
    if len(parameter.arguments) < 2:
        return start, length
    count = words.number(parameter.arguments[1])
    return start, max(length + count if count < 0 else start + count, 0)


def _of_list(parameter: Parameter, words: Words) -> Text | Listed | Word:
    variables = words.variables(parameter.line)
    items = variables.elements(parameter.name)
    index = parameter.index.plain if parameter.index is not None else None
    is_joined = "*" in (parameter.name, index)
    if parameter.prefix == "#":
        return Text.of(str(len(items)))
    if parameter.prefix == "!":
        return Listed(tuple(map(Text.of, variables.keys(parameter.name))), is_joined)
    if parameter.operator in _DEFAULTS:
        is_set = bool(items) and any(items) if parameter.operator[0] == ":" else bool(items)
        if parameter.operator[-1] == "+":
            return parameter.arguments[0] if is_set else Listed((), is_joined)
        return Listed(items, is_joined) if is_set else parameter.arguments[0]
    if parameter.operator == ":":
        if parameter.name in ("@", "*"):
            items = (variables.text("0") or Text(), *items)
        start, stop = _slice(parameter, words, len(items))
        if parameter.name in ("@", "*") and len(parameter.arguments) < 2:
            stop = len(items)
        return Listed(items[start:stop], is_joined)
    return Listed(tuple(_or_unknown(parameter, words, item) for item in items), is_joined)


def _or_unknown(parameter: Parameter, words: Words, item: Text) -> Text:
    try:
        return _operated(parameter, words, item)
    except UndeterminedError as error:
        return Text((error.unknown.derived(parameter.source),))
