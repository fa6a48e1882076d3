"""`[ ... ]` and `[[ ... ]]`: true, false, or None where only running the script would tell.

After POSIX.1-2017, `test`, and the GNU Bash manual, 6.4 Bash Conditional Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from launch.trainers.shell.grammar.syntax import Word
from launch.trainers.shell.words import patterns
from launch.trainers.shell.words.arithmetic import ArithmeticFaultError
from launch.trainers.shell.words.values import Text, UndeterminedError

Truth = bool | None

_NUMERIC: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_TEXTUAL = ("=", "==", "!=", "<", ">", "=~")
_OF_FILES = ("-nt", "-ot", "-ef")
_BINARY = (*_NUMERIC, *_TEXTUAL, *_OF_FILES)
_UNARY = tuple("-" + letter for letter in "zneafdsrwxLhbcpSOGNkugtvoR")
_EXISTING = ("-e", "-a", "-f", "-d")
_EXISTING_AT_LEAST = ("-s", "-r", "-w", "-x", "-b", "-c", "-p", "-S", "-L", "-h")

_CLASSES = {
    "[:digit:]": "0-9",
    "[:space:]": r"\s",
    "[:alpha:]": "A-Za-z",
    "[:alnum:]": "A-Za-z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
}
"""Classes of characters as Python's regular expressions know them."""


class Facts(Protocol):
    """What tests ask for."""

    def exists(self, path: str) -> Truth:
        """Whether a path is there, None where nobody knows."""
        ...

    def is_set(self, name: str) -> Truth:
        """Whether a variable is set."""
        ...

    def text(self, word: Word) -> Text:
        """A word's text."""
        ...

    def pattern(self, word: Word, escape: Callable[[str], str] = patterns.escaped) -> str:
        """A word as a pattern. Raises UndeterminedError."""
        ...

    def number(self, word: Word) -> int:
        """A word as arithmetic. Raises UndeterminedError, ArithmeticFaultError."""
        ...

    def matched(self, groups: tuple[str, ...] | None) -> None:
        """Notes what `=~` matched, None where nobody knows."""
        ...


def both(one: Truth, other: Truth) -> Truth:
    """And, where not knowing one may not matter."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def negated(truth: Truth) -> Truth:
    """Not."""
    return None if truth is None else not truth


def tested(arguments: list[Text], facts: Facts) -> Truth:
    """`[ arguments ]`. What bash complains about is false."""
    reader = _Test(arguments, facts)
    truth = reader.disjunction() if arguments else False
    return truth if reader.at == len(arguments) else False


class _Test:
    """Reads the arguments of `[`, which are texts already."""

    def __init__(self, arguments: list[Text], facts: Facts) -> None:
        self.at = 0
        self._arguments = arguments
        self._facts = facts

    def disjunction(self) -> Truth:
        truth = self._conjunction()
        while self._takes("-o"):
            truth = negated(both(negated(truth), negated(self._conjunction())))
        return truth

    def _conjunction(self) -> Truth:
        truth = self._negation()
        while self._takes("-a"):
            truth = both(truth, self._negation())
        return truth

    def _negation(self) -> Truth:
        if self._word() == "!" and self._word(1) is not None and self._word(1) not in _BINARY:
            self.at += 1
            return negated(self._negation())
        return self._primary()

    def _primary(self) -> Truth:
        operator = self._word(1)
        if operator in _BINARY and self._word(2) is not None:
            left, right = self._arguments[self.at], self._arguments[self.at + 2]
            self.at += 3
            return _compared(left, operator, right, self._facts)
        first = self._word()
        if first == "(" and self._word(1) is not None:
            self.at += 1
            truth = self.disjunction()
            return truth if self._takes(")") else False
        if first in _UNARY and self._word(1) not in (None, "-a", "-o", ")"):
            operand = self._arguments[self.at + 1]
            self.at += 2
            return _of_one(first, operand, self._facts)
        if first is None:
            return False
        self.at += 1
        return _is_filled(self._arguments[self.at - 1])

    def _word(self, ahead: int = 0) -> str | None:
        """A word further on; None at the end. Unknown ones are no operators."""
        place = self.at + ahead
        return str(self._arguments[place]) if place < len(self._arguments) else None

    def _takes(self, operator: str) -> bool:
        if self._word() != operator:
            return False
        self.at += 1
        return True


def _compared(left: Text, operator: str, right: Text, facts: Facts) -> Truth:
    if operator in _OF_FILES:
        return None
    if not left.is_known or not right.is_known:
        return _differ_surely(left, right, operator)
    one, two = str(left), str(right)
    if operator in _NUMERIC:
        if not all(re.fullmatch(r"\s*[-+]?\d+\s*", text) for text in (one, two)):
            return False
        return _NUMERIC[operator](int(one), int(two))
    return {"!=": one != two, "<": one < two, ">": one > two}.get(operator, one == two)


def _differ_surely(left: Text, right: Text, operator: str) -> Truth:
    """A text that has a known piece is not the empty one."""
    for one, other in ((left, right), (right, left)):
        if not one.pieces and any(isinstance(piece, str) for piece in other.pieces):
            return {"=": False, "==": False, "!=": True}.get(operator)
    return None


def _of_one(operator: str, operand: Text, facts: Facts) -> Truth:
    if operator in ("-z", "-n"):
        return _is_filled(operand) if operator == "-n" else negated(_is_filled(operand))
    if not operand.is_known:
        return None
    if operator == "-v":
        return facts.is_set(str(operand))
    if operator not in (*_EXISTING, *_EXISTING_AT_LEAST):
        return None
    is_there = facts.exists(str(operand)) if operand else False
    return None if is_there and operator in _EXISTING_AT_LEAST else is_there


def _is_filled(text: Text) -> Truth:
    if any(isinstance(piece, str) for piece in text.pieces):
        return True
    return None if text.pieces else False


def conditional(tokens: tuple[Word | str, ...], facts: Facts) -> Truth:
    """`[[ tokens ]]`. What bash complains about is false."""
    reader = _Conditional(tokens, facts)
    truth = reader.disjunction() if tokens else False
    return truth if reader.at == len(tokens) else False


class _Conditional:
    """Reads the words between `[[` and `]]`; a word that is not needed is not expanded."""

    def __init__(self, tokens: tuple[Word | str, ...], facts: Facts) -> None:
        self.at = 0
        self._tokens = tokens
        self._facts = facts
        self._is_needed = True

    def disjunction(self) -> Truth:
        truth = self._conjunction()
        while self._takes("||"):
            truth = negated(
                both(negated(truth), negated(self._where(not truth, self._conjunction)))
            )
        return truth

    def _conjunction(self) -> Truth:
        truth = self._primary()
        while self._takes("&&"):
            truth = both(truth, self._where(truth is not False, self._primary))
        return truth

    def _where(self, is_needed: bool, read: Callable[[], Truth]) -> Truth:
        before = self._is_needed
        self._is_needed = before and is_needed
        truth = read()
        self._is_needed = before
        return truth

    def _primary(self) -> Truth:
        if self._operator() == "!":
            self.at += 1
            return negated(self._primary())
        if self._takes("("):
            truth = self.disjunction()
            return truth if self._takes(")") else False
        first, operator, third = self._token(), self._operator(1), self._token(2)
        if isinstance(first, Word) and operator in _BINARY and isinstance(third, Word):
            self.at += 3
            return self._compared(first, operator, third) if self._is_needed else None
        second = self._token(1)
        if self._operator() in _UNARY and isinstance(second, Word):
            operator = self._operator()
            self.at += 2
            operand = self._facts.text(second) if self._is_needed else Text()
            return _of_one(operator, operand, self._facts) if self._is_needed else None
        self.at += 1
        if not isinstance(first, Word) or not self._is_needed:
            return None if isinstance(first, Word) else False
        return _is_filled(self._facts.text(first))

    def _compared(self, left: Word, operator: str, right: Word) -> Truth:
        try:
            if operator in _NUMERIC:
                return _NUMERIC[operator](self._facts.number(left), self._facts.number(right))
            text = self._facts.text(left)
            if operator in ("=", "==", "!="):
                pattern = self._facts.pattern(right)
                if not text.is_known:
                    return _differ_surely(text, Text.of(pattern), operator)
                return patterns.matches(pattern, str(text)) == (operator != "!=")
            if operator == "=~":
                return self._matched(text, right)
            return _compared(text, operator, self._facts.text(right), self._facts)
        except UndeterminedError:
            return None
        except ArithmeticFaultError:
            return False

    def _matched(self, text: Text, expression: Word) -> Truth:
        self._facts.matched(None)
        form = self._facts.pattern(expression, re.escape)
        for name, characters in _CLASSES.items():
            form = form.replace(name, characters)
        try:
            match = re.search(form, text.known())
        except re.error:
            return None
        self._facts.matched((match[0], *(group or "" for group in match.groups())) if match else ())
        return match is not None

    def _token(self, ahead: int = 0) -> Word | str | None:
        place = self.at + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _operator(self, ahead: int = 0) -> str:
        token = self._token(ahead)
        return (token.plain or "") if isinstance(token, Word) else token or ""

    def _takes(self, operator: str) -> bool:
        if self._token() != operator:
            return False
        self.at += 1
        return True
