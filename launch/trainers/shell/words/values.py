"""What expansions yield: text with holes where nobody knows without running something."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Unknown:
    """A piece of text that only running the script would tell.

    source: shell text that yields it, such as `$(wc -l hosts)`. line: where that stands, from 1.
    why: half a sentence that follows "since". variable: the first that was given it. is_live: it
    may stand in another script as it is, since it changes nothing and depends on nothing else in
    this one: `$(date +%F)`, `${HOME}`. root: what this was computed from.
    """

    source: str
    line: int
    why: str
    variable: str | None = None
    is_live: bool = False
    root: Unknown | None = None

    def given_to(self, variable: str) -> Unknown:
        """The same, with the variable noted where it is the first."""
        return self if self.variable else replace(self, variable=variable)

    def derived(self, source: str, variable: str | None = None) -> Unknown:
        """What is computed from it: unknown for the same cause, and not live."""
        return Unknown(source, self.line, self.why, variable, root=self.origin)

    @property
    def origin(self) -> Unknown:
        """Where the trouble begins."""
        return self.root or self


class UndeterminedError(Exception):
    """A decision or a computation met a value that is unknown."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.source)
        self.unknown = unknown


@dataclass(frozen=True)
class Text:
    """A text, in pieces. Two known pieces never follow one another, and none is empty."""

    pieces: tuple[str | Unknown, ...] = ()

    @classmethod
    def of(cls, *pieces: str | Unknown) -> Text:
        """The pieces, one after the other."""
        merged: list[str | Unknown] = []
        for piece in pieces:
            if isinstance(piece, str) and merged and isinstance(merged[-1], str):
                merged[-1] += piece
            elif piece != "":
                merged.append(piece)
        return cls(tuple(merged))

    def __add__(self, other: Text) -> Text:
        return Text.of(*self.pieces, *other.pieces)

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def __str__(self) -> str:
        """The text, unknown pieces as the shell text that yields them."""
        return "".join(p if isinstance(p, str) else p.source for p in self.pieces)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """What is not known of it."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Unknown))

    @property
    def is_known(self) -> bool:
        """Whether the text is whole."""
        return not self.unknown

    def known(self) -> str:
        """The text. Raises UndeterminedError where a piece is unknown."""
        for unknown in self.unknown:
            raise UndeterminedError(unknown)
        return str(self)

    def is_empty(self) -> bool:
        """Whether there is no character. Raises UndeterminedError where that is unknown."""
        return not any(isinstance(piece, str) for piece in self.pieces) and not self.known()

    def given_to(self, variable: str) -> Text:
        """The same, unknown pieces with the variable that holds them."""
        return Text(tuple(p if isinstance(p, str) else p.given_to(variable) for p in self.pieces))

    def without_last_newlines(self) -> Text:
        """As command substitution leaves it."""
        if self.pieces and isinstance(self.pieces[-1], str):
            return Text.of(*self.pieces[:-1], self.pieces[-1].rstrip("\n"))
        return self


def unknown_text(source: str, line: int, why: str, *, is_live: bool = False) -> Text:
    """A text of which nothing is known."""
    return Text((Unknown(source, line, why, is_live=is_live),))


def live_sources(text: Text) -> set[str]:
    """The shell text of its pieces that is to be expanded later."""
    return {unknown.source for unknown in text.unknown if unknown.is_live}
