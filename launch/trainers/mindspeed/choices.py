"""Which values a parameter of a MindSpeed-MM backend takes, and what is said of one it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import UserError, did_you_mean
from autotune.space.point import plain

_KIND_NAMES: Mapping[type, str] = {
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    list: "a list of names",
    type(None): "null",
}


@dataclass(frozen=True)
class Values:
    """kinds: types. least: the smallest number. words: the texts that can be, None for any.

    True and false are no numbers here, as in YAML and unlike in Python.
    """

    kinds: tuple[type, ...]
    least: int | None = None
    words: tuple[str, ...] | None = None

    def hold(self, value: Any) -> bool:
        """Whether a choice can be this value."""
        if type(value) not in self.kinds:
            return False
        if isinstance(value, str):
            return self.words is None or value in self.words
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return not is_number or self.least is None or value >= self.least

    def __str__(self) -> str:
        """What can be, in words."""
        return " or ".join(self._kind(kind) for kind in self.kinds)

    def _kind(self, kind: type) -> str:
        if kind is str and self.words is not None:
            return ", ".join(self.words)
        if kind is int and self.least is not None:
            return f"a whole number of at least {self.least}"
        return _KIND_NAMES[kind]


WHOLE = Values((int,))
COUNT = Values((int,), least=0)
SIZE = Values((int,), least=1)
SWITCH = Values((bool,))
MODULES = Values((list,))
SIZE_OR_AUTO = Values((int, str), least=1, words=("auto",))


def one_of(*words: str) -> Values:
    """Texts that are listed."""
    return Values((str,), words=words)


def check_choices(
    choices: Mapping[str, Sequence[Any]],
    values_of: Mapping[str, Values],
    backend: str,
) -> None:
    """Raises UserError for a parameter that the backend lacks, or a choice it cannot take.

    backend: as in "mindspeed_fsdp2 has no such parameter".
    """
    for parameter, given in choices.items():
        if parameter not in values_of:
            raise UserError(
                f"space.parameters.{parameter}: {backend}; {did_you_mean(parameter, values_of)}"
            )
        for value in given:
            if not values_of[parameter].hold(value):
                raise UserError(
                    f"space.parameters.{parameter}.choices: {plain(value)!r} cannot be; "
                    f"it takes {values_of[parameter]}"
                )
