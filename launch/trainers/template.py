"""Texts with `{...}` in the place of values: a command's words, environment, values of keys.

A field is an expression of the space file's language over the parameters, `model.*`,
`cluster.*` and the names that a trainer adds, such as `steps`. `{name:text}` is the text where
the expression is true. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import UserError
from autotune.space.expression import Expression, InapplicableError
from autotune.space.point import plain

_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_BRACES = re.compile(r"\{[^{}]*\}")
_LITERAL = {"{{": "{", "}}": "}"}


@dataclass(frozen=True)
class Blank:
    """What a person fills in before training. Fields that read it stay visible, as `<steps>`."""


@dataclass(frozen=True)
class Field:
    """One `{...}`. then: what stands there where the expression is true, None for its value."""

    expression: Expression
    then: str | None = None

    def value(self, scope: Mapping[str, Any]) -> Any:
        """The value, None where there is none: a parameter is inactive, or the text is left out."""
        if any(isinstance(scope.get(name), Blank) for name in self.expression.names):
            asked = self.expression.text.strip()
            return f"<{asked}>" if self.then is None else f"<{self.then} if {asked}>"
        try:
            found = self.expression.evaluate(scope)
        except InapplicableError:
            return None
        if self.then is None:
            return found
        return self.then if found else None


@dataclass(frozen=True)
class Template:
    """A text with fields. parts: literal texts and fields in turns."""

    parts: tuple[str | Field, ...]

    @classmethod
    def parse(cls, text: str, where: str) -> Template:
        """Reads the text; `where` is the key that it belongs to. Raises UserError."""
        parts: list[str | Field] = []
        end = 0
        for match in _FIELD.finditer(text):
            parts.append(text[end : match.start()])
            parts.append(_part(match, text, where))
            end = match.end()
        parts.append(text[end:])
        return cls(tuple(part for part in parts if part != ""))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in their order."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    @property
    def names(self) -> frozenset[str]:
        """The parameters and trainer's names that it reads."""
        return frozenset(name for field in self.fields for name in field.expression.names)

    def may_be_null(self, active: Container[str]) -> bool:
        """Whether null is its value, rather than that it has none. active: names with a value."""
        field = self.parts[0] if len(self.parts) == 1 else None
        if not isinstance(field, Field) or field.then is not None:
            return False
        return all(name in active for name in field.expression.names)

    @property
    def is_option(self) -> bool:
        """Whether its text begins with a dash, as far as that is known beforehand."""
        first = self.parts[0] if self.parts else ""
        text = first.then if isinstance(first, Field) else first
        return text is not None and text.startswith("-")

    def value(self, scope: Mapping[str, Any]) -> Any:
        """What it stands for: of its own type where it is one field, else text; None for nothing.

        A text of which one field has no value has none.
        """
        if len(self.parts) == 1 and isinstance(self.parts[0], Field):
            return self.parts[0].value(scope)
        texts = []
        for part in self.parts:
            value = part.value(scope) if isinstance(part, Field) else part
            if value is None:
                return None
            texts.append(plain(value))
        return "".join(texts)


def split_words(text: str) -> list[str]:
    """The words of a command as a shell splits them; a field is whole, with its own quotes.

    Raises ValueError for a quote that is not closed.
    """
    fields: list[str] = []

    def mark(match: re.Match[str]) -> str:
        fields.append(match[0])
        return f"\0{len(fields) - 1}\0"

    words = shlex.split(_BRACES.sub(mark, text))
    return [re.sub("\0([0-9]+)\0", lambda match: fields[int(match[1])], word) for word in words]


def render_words(words: Sequence[Template], scope: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a command. One without a value is left out, with the option before it.

    So `--ulysses-degree {ulysses_degree}` disappears where there is no such degree. A word that
    is an option itself, such as `{recompute:--recompute}` or `--lr={lr}`, goes alone.
    """
    rendered: list[str] = []
    option = False  # whether the last word is an option that waits for its value
    for word in words:
        value = word.value(scope)
        if value is None:
            if option and not word.is_option:
                rendered.pop()
            option = False
            continue
        text = plain(value)
        rendered.append(text)
        option = not word.fields and text.startswith("-") and "=" not in text
    return tuple(rendered)


def _part(match: re.Match[str], text: str, where: str) -> str | Field:
    if match[0] in _LITERAL:
        return _LITERAL[match[0]]
    if match[1] is None:
        raise UserError(
            f"{where}: {text!r} has a single {match[0]!r}; write {match[0] * 2} for one"
        )
    expression, colon, then = match[1].partition(":")
    return Field(Expression.parse(expression, where), then if colon else None)
