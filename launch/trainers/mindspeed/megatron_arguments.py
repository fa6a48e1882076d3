"""The arguments of a Megatron program, on its command line or in `gpt_args` of a YAML.

Names are as on the command line: `--micro-batch-size`. A YAML for `pretrain_transformers.py` is
flattened to such a line (mindspeed_mm/configs/read_yaml_config.py at commit 57069cd5): its groups
are forgotten, `true` becomes a flag, and `false` is an error there, so a flag that is off is not
in the file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from launch.trainers.documents import KeyPath, TreeDocument
from launch.trainers.shell.arguments import Options


class Arguments(ABC):
    """What a program is told, changed in place."""

    @abstractmethod
    def text(self, name: str) -> str | None:
        """The value of an option, None where it is absent; empty for a flag that is given."""

    @abstractmethod
    def put(self, name: str, value: Any) -> None:
        """Gives an option its value; True makes a flag, False and None take it away."""

    @abstractmethod
    def as_mapping(self) -> dict[str, Any]:
        """All of them as plain data: texts, lists of texts, and true for flags."""

    def number(self, name: str) -> int | None:
        """The value as a whole number, None where it is absent or none."""
        text = self.text(name)
        return int(text) if text is not None and text.strip().lstrip("-").isdecimal() else None

    def has(self, name: str) -> bool:
        """Whether an option or a flag is given."""
        return self.text(name) is not None


class LineArguments(Arguments):
    """Words on a command line; the last of several wins."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._options = Options.parse(words)

    @property
    def words(self) -> tuple[str, ...]:
        """The command line."""
        return self._options.words

    def text(self, name: str) -> str | None:
        """The value of an option, None where it is absent; empty for a flag that is given."""
        values = self._options.get(name)
        return None if values is None else values[0] if values else ""

    def put(self, name: str, value: Any) -> None:
        """Gives an option its value; True makes a flag, False and None take it away."""
        if value is None or value is False:
            self._options = self._options.remove(name)
        elif value is True:
            self._options = self._options.set(name)
        else:
            self._options = self._options.set(name, str(value))

    def as_mapping(self) -> dict[str, Any]:
        """All of them as plain data: texts, lists of texts, and true for flags."""
        given = {option.name: option.values for option in self._options if option.name}
        return {name: _plain(values) for name, values in given.items()}


_GROUPS = ("gpt_args", "lora_args")


class YamlArguments(Arguments):
    """`gpt_args` of a YAML and `lora_args` after it, their groups searched for a name."""

    def __init__(self, document: TreeDocument) -> None:
        self._document = document

    def text(self, name: str) -> str | None:
        """The value of an option, None where it is absent; empty for a flag that is given."""
        path = self._path(name)
        value = None if path is None else self._document.get(path)
        if value is None or value is False:
            return None
        return "" if value is True else str(value)

    def put(self, name: str, value: Any) -> None:
        """Gives an option its value; True makes a flag, False and None take it away."""
        path = self._path(name)
        if value is None or value is False:
            if path is not None:
                self._document.remove(path)
        else:
            self._document.put(path or ["gpt_args", _key(name)], value)

    def as_mapping(self) -> dict[str, Any]:
        """All of them as plain data: texts, lists of texts, and true for flags."""
        found = {f"--{path[-1].replace('_', '-')}": value for path, value in self._leaves()}
        # `in (None, False)` would take a 0 away too.
        return {name: v for name, v in found.items() if v is not None and v is not False}

    def _path(self, name: str) -> KeyPath | None:
        """Where the name stands; the last of several is what the program takes."""
        return next((path for path, _ in reversed(self._leaves()) if path[-1] == _key(name)), None)

    def _leaves(self) -> list[tuple[list[str], Any]]:
        data = self._document.data
        groups = {group: data[group] for group in _GROUPS if isinstance(data.get(group), Mapping)}
        return list(_leaves([], groups))


def _leaves(where: list[str], group: Mapping[str, Any]) -> Iterator[tuple[list[str], Any]]:
    for key, value in group.items():
        if isinstance(value, Mapping):
            yield from _leaves([*where, str(key)], value)
        else:
            yield [*where, str(key)], value


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _plain(values: tuple[str, ...]) -> Any:
    if not values:
        return True
    return values[0] if len(values) == 1 else list(values)
