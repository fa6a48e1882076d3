"""Integer arithmetic of `$((...))`, after the GNU Bash manual, 6.5 Shell Arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

_TOKEN = re.compile(
    r"\s*(?P<token>\d+#[0-9a-zA-Z@_]+|0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*(?:\[[^\]]*\])?"
    r"|<<=|>>=|\*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&^|]=|[-+*/%<>=!~&^|?:(),])"
)
_VARIABLE = re.compile(r"[A-Za-z_]")
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
    ("**",),
)
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|=")
_DEEPEST = 64


class ArithmeticFaultError(Exception):
    """What bash would complain about, half a sentence."""


class Variables(Protocol):
    """Where an expression finds its variables. Names may carry an index, `a[1]`."""

    def value(self, name: str) -> str:
        """The variable's text, empty where it is unset."""
        ...

    def assign(self, name: str, value: str) -> None:
        """Sets the variable."""
        ...


def evaluate(expression: str, variables: Variables, depth: int = 0) -> int:
    """The value of an expression after its expansion. Raises ArithmeticFaultError.

    An empty one is 0. A variable's text is an expression itself.
    """
    if depth > _DEEPEST:
        raise ArithmeticFaultError("a variable's value leads back to itself")
    parser = _Parser(_tokens(expression), variables, depth)
    return parser.whole() if parser.tokens else 0


def _tokens(expression: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    text = expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArithmeticFaultError(f"{text[at:].strip()!r} is no arithmetic")
        at = match.end()
        found = match["token"]
        steps = found in ("++", "--") and (
            _VARIABLE.match(text[at:].lstrip()) or (tokens and _VARIABLE.match(tokens[-1]))
        )
        # Two signs where there is no variable to step.
        tokens.extend([found] if steps or found not in ("++", "--") else found)
    return tokens


class _Parser:
    """Evaluates while it reads. `is_live`: whether assignments here happen."""

    def __init__(self, tokens: list[str], variables: Variables, depth: int) -> None:
        self.tokens = tokens
        self.at = 0
        self.is_live = True
        self._variables = variables
        self._depth = depth

    def whole(self) -> int:
        value = self._comma()
        if self.at < len(self.tokens):
            raise ArithmeticFaultError(f"{self.tokens[self.at]!r} is not expected")
        return value

    @property
    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, *tokens: str) -> str:
        found = self._next
        if found in tokens and found:
            self.at += 1
            return found
        return ""

    def _comma(self) -> int:
        value = self._assignment()
        while self._take(","):
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        name = self._next
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if not _VARIABLE.match(name) or following not in _ASSIGNING:
            return self._ternary()
        self.at += 2
        value = self._assignment()
        if following != "=":
            value = self._operated(following[:-1], self._value(name), value)
        self._assign(name, value)
        return value

    def _ternary(self) -> int:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        chosen = self._where(bool(condition), self._comma)
        if not self._take(":"):
            raise ArithmeticFaultError("':' is missing after '?'")
        other = self._where(not condition, self._assignment)
        return chosen if condition else other

    def _where(self, is_taken: bool, read: Callable[[], int]) -> int:
        """Reads a part that only counts where it is taken."""
        before = self.is_live
        self.is_live = before and is_taken
        value = read()
        self.is_live = before
        return value

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while operator := self._take(*_LEVELS[level]):
            if operator == "**":
                # Binds to the right.
                return self._operated(operator, left, self._binary(level))
            if operator in ("||", "&&"):
                needed = bool(left) == (operator == "&&")
                right = self._where(needed, lambda: self._binary(level + 1))
                left = int(bool(right)) if needed else int(bool(left))
            else:
                left = self._operated(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> int:
        if step := self._take("++", "--"):
            name = self._next
            if not _VARIABLE.match(name):
                raise ArithmeticFaultError(f"{step} needs a variable")
            self.at += 1
            value = self._value(name) + (1 if step == "++" else -1)
            self._assign(name, value)
            return value
        operator = self._take("!", "~", "-", "+")
        if not operator:
            return self._primary()
        value = self._unary()
        return {"!": int(not value), "~": ~value, "-": -value, "+": value}[operator]

    def _primary(self) -> int:
        word = self._next
        self.at += 1
        if word == "(":
            value = self._comma()
            if not self._take(")"):
                raise ArithmeticFaultError("')' is missing")
            return value
        if word[:1].isdigit():
            return _number(word)
        if not _VARIABLE.match(word):
            raise ArithmeticFaultError(
                f"{word!r} is not expected" if word else "an operand is missing"
            )
        value = self._value(word)
        if step := self._take("++", "--"):
            self._assign(word, value + (1 if step == "++" else -1))
        return value

    def _value(self, name: str) -> int:
        if not self.is_live:
            return 0
        return evaluate(self._variables.value(name), self._variables, self._depth + 1)

    def _assign(self, name: str, value: int) -> None:
        if self.is_live:
            self._variables.assign(name, str(value))

    def _operated(self, operator: str, left: int, right: int) -> int:
        if not self.is_live:
            return 0
        if operator in ("/", "%"):
            if right == 0:
                raise ArithmeticFaultError("division by 0")
            # Toward zero, as in C.
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        if operator == "**" and not 0 <= right < 64:
            raise ArithmeticFaultError(f"{operator} by {right} goes beyond 64 bits")
        value = _OPERATIONS[operator](left, right)
        # 64 bits, with a sign.
        return (value + 2**63) % 2**64 - 2**63


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<<": lambda left, right: left << right % 64,
    ">>": lambda left, right: left >> right % 64,
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "**": lambda left, right: left**right,
}


def _number(token: str) -> int:
    base, mark, digits = token.partition("#")
    try:
        if mark:
            return int(digits, int(base))
        if token[:2].lower() == "0x":
            return int(token, 16)
        return int(token, 8) if len(token) > 1 and token[0] == "0" else int(token)
    except ValueError:
        raise ArithmeticFaultError(f"{token!r} is no number") from None
