"""The options of a program that reads them with argparse: kept in order, read and changed by name.

https://docs.python.org/3/library/argparse.html: the last of several wins, `--name=value` is
`--name value`, a word that begins with `-` is an option unless it is a negative number or holds a
blank, `--` ends the options. Abbreviated names are not understood as what they abbreviate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

_NEGATIVE_NUMBER = re.compile(r"-(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Option:
    """One option and the words after it; words that belong to none where `name` is None.

    is_joined: written as `--name=value`.
    """

    name: str | None
    values: tuple[str, ...] = ()
    is_joined: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """As it stands on the command line."""
        if self.name is None:
            return self.values
        if self.is_joined:
            return (f"{self.name}={self.values[0]}",)
        return (self.name, *self.values)


@dataclass(frozen=True)
class Options:
    """A command line after the program's name. Names are given as they are written: `--lr`."""

    items: tuple[Option, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str], flags: Collection[str] = ()) -> Options:
        """The options that words hold.

        flags: names that take no value. The words after any other option are taken for its
        values up to the next option, since only the program knows how many it takes.
        """
        items: list[Option] = []
        rest = iter(words)
        for word in rest:
            name, joined, value = word.partition("=")
            if word == "--":
                items.append(Option(None, ("--", *rest)))
            elif not is_option(word):
                _append_value(items, word, flags)
            elif joined and word.startswith("--"):
                items.append(Option(name, (value,), is_joined=True))
            else:
                items.append(Option(word))
        return cls(tuple(items))

    def __iter__(self) -> Iterator[Option]:
        return iter(self.items)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    @property
    def words(self) -> tuple[str, ...]:
        """The command line."""
        return tuple(word for item in self.items for word in item.words)

    @property
    def positional(self) -> tuple[str, ...]:
        """The words that belong to no option."""
        loose = [word for item in self.items if item.name is None for word in item.values]
        if "--" in loose:
            loose.remove("--")
        return tuple(loose)

    def get(self, name: str) -> tuple[str, ...] | None:
        """The values of the last option of that name: none for a flag; None where it is absent."""
        return next((item.values for item in reversed(self.items) if item.name == name), None)

    def value(self, name: str) -> str | None:
        """The first value of the option, None where it is absent or a flag."""
        values = self.get(name)
        return values[0] if values else None

    def set(self, name: str, *values: str) -> Options:
        """With the option once, where its last one stood, or before `--` or at the end.

        Raises ValueError for a name that is no option.
        """
        if not is_option(name) or name == "--" or "=" in name:
            raise ValueError(f"{name!r} is no name of an option; write it as --name")
        places = [at for at, item in enumerate(self.items) if item.name == name]
        ends = [at for at, item in enumerate(self.items) if item.values[:1] == ("--",)]
        place = places[-1] if places else ends[0] if ends else len(self.items)
        # A value that looks like an option can only be given with `=`.
        needs_joining = len(values) == 1 and is_option(values[0])
        kept = replace(self.items[place], values=values) if places else Option(name, values)
        option = replace(kept, is_joined=len(values) == 1 and (kept.is_joined or needs_joining))
        before = [item for item in self.items[:place] if item.name != name]
        return Options((*before, option, *self.items[place + bool(places) :]))

    def remove(self, name: str) -> Options:
        """Without the option and its values, wherever it stands."""
        return Options(tuple(item for item in self.items if item.name != name))


def is_option(word: str) -> bool:
    """Whether argparse takes a word for an option's name."""
    return (
        len(word) > 1
        and word.startswith("-")
        and not _NEGATIVE_NUMBER.fullmatch(word)
        and (" " not in word or "=" in word.partition(" ")[0])
    )


def _append_value(items: list[Option], word: str, flags: Collection[str]) -> None:
    last = items[-1] if items else None
    if last is None or last.is_joined or last.name in flags:
        items.append(Option(None, (word,)))
    else:
        items[-1] = replace(last, values=(*last.values, word))
