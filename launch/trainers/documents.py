"""Configuration files that are changed by key, all else kept: YAML, JSON, and plain text.

A key that is not there is an error unless it is to be added: most programs take a misspelt key
without a word.
"""

from __future__ import annotations

import copy
import io
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from pathlib import PurePath
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from autotune.errors import UserError, did_you_mean
from autotune.space.point import plain

KeyPath = Sequence[str]
_NOTHING = object()
# A comment begins after a blank; in quotes there is none.
_LINE = (
    r"^[ \t]*(?:export[ \t]+)?{key}[ \t]*[=:][ \t]*"
    r"(?P<value>(?P<quote>[\"'])(?:(?!(?P=quote)).)*(?P=quote)|[^\n]*?)"
    r"[ \t]*(?:(?<=[ \t])#.*)?$"
)


def key_path(dotted: str) -> KeyPath:
    """`training.plugin.0` as its parts; numbers are positions in a list."""
    return dotted.split(".")


class Document(ABC):
    """One file. name: as it is called in errors."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def get(self, path: KeyPath, default: Any = None) -> Any:
        """The value at a key, as plain data, or the default where there is none."""

    @abstractmethod
    def set(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key. Raises UserError where there is no such key."""

    @abstractmethod
    def text(self) -> str:
        """The whole file."""


class TreeDocument(Document):
    """A file that holds mappings and lists: YAML with its comments, or JSON."""

    def __init__(self, name: str, tree: Any) -> None:
        super().__init__(name)
        if not isinstance(tree, MutableMapping):
            raise UserError(f"{name} holds no mapping; is it the right file?")
        self._tree: MutableMapping[Any, Any] = tree
        # As the program reads it, kept until a key is changed: some files are asked for hundreds.
        self._data: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """All of it as the program reads it, plain data of the caller's own."""
        return copy.deepcopy(self._present)

    @property
    def _present(self) -> dict[str, Any]:
        if self._data is None:
            self._data = self._read()
        return self._data

    @abstractmethod
    def _read(self) -> dict[str, Any]:
        """All of it as the program reads it, made anew."""

    def get(self, path: KeyPath, default: Any = None) -> Any:
        """The value at a key as the program reads it, or the default where there is none."""
        node: Any = self._present
        for part in path:
            node = _child(node, part)
            if node is _NOTHING:
                return default
        return node

    def has(self, path: KeyPath) -> bool:
        """Whether there is such a key."""
        return self.get(path, _NOTHING) is not _NOTHING

    def set(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key. Raises UserError where there is no such key."""
        parent = self._parent(path)
        if _child(parent, path[-1]) is _NOTHING:
            raise self._unknown(path, parent)
        self._assign(parent, path[-1], value)

    def put(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key, which is added where there is none, with its parents."""
        node: Any = self._tree
        for part in path[:-1]:
            below = _child(node, part)
            if below is _NOTHING or below is None:
                below = {}
                self._assign(node, part, below)
                below = _child(node, part)
            node = below
        if not isinstance(node, (MutableMapping, MutableSequence)):
            raise UserError(f"{self.name}: {'.'.join(path[:-1])} is no mapping")
        self._assign(node, path[-1], value)

    def remove(self, path: KeyPath) -> None:
        """Takes a key away; one that is not there is no error."""
        node: Any = self._tree
        for part in path[:-1]:
            node = _child(node, part)
            if node is _NOTHING:
                return
        if isinstance(node, MutableMapping):
            node.pop(_key_of(node, path[-1]), None)
            self._data = None

    def _assign(self, node: Any, part: str, value: Any) -> None:
        _assign(node, part, value)
        self._data = None

    def _parent(self, path: KeyPath) -> Any:
        node: Any = self._tree
        for depth, part in enumerate(path[:-1]):
            below = _child(node, part)
            if below is _NOTHING:
                raise self._unknown(path[: depth + 1], node)
            node = below
        return node

    def _unknown(self, path: KeyPath, parent: Any) -> UserError:
        known = [str(key) for key in parent] if isinstance(parent, Mapping) else []
        hint = did_you_mean(path[-1], known)
        stop = "" if hint.endswith("?") else "."
        return UserError(
            f"{self.name} has no key {'.'.join(path)}; {hint}{stop} To add a key that the program "
            f"knows, write +{'.'.join(path)}"
        )


class YamlDocument(TreeDocument):
    """YAML, with comments, order, anchors and quotes as they were.

    Written by YAML 1.2, read by programs with PyYAML, which follows YAML 1.1: texts such as `on`
    are quoted, and numbers have the point without which PyYAML takes them for text.
    """

    def __init__(self, name: str, text: str) -> None:
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 4096
        self._yaml.indent(mapping=2, sequence=4, offset=2)
        self._yaml.representer.add_representer(type(None), _null)
        self._yaml.representer.add_representer(_PlainNumber, _number)
        try:
            tree = self._yaml.load(text)
            yaml.safe_load(text)
        except (YAMLError, yaml.YAMLError) as error:
            raise UserError(f"{name} is no YAML: {' '.join(str(error).split())}") from None
        super().__init__(name, tree)

    def _read(self) -> dict[str, Any]:
        """All of it as PyYAML reads it."""
        read = yaml.safe_load(self.text())
        assert isinstance(read, dict)
        return read

    def set(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key. Raises UserError where there is no such key."""
        self._separate(path[:-1])
        super().set(path, _for_pyyaml(value))

    def put(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key, which is added where there is none, with its parents."""
        self._separate(path[:-1])
        super().put(path, _for_pyyaml(value))

    def remove(self, path: KeyPath) -> None:
        """Takes a key away; one that is not there is no error."""
        self._separate(path[:-1])
        super().remove(path)
        if len(path) > 1 and self.has(path):  # it came with a merge (`<<`)
            self._write_out(path[:-1])
            super().remove(path)

    def _separate(self, path: KeyPath) -> None:
        """Writes out what an alias or a merge takes from elsewhere, since it will differ."""
        first = _first_places(self._tree)
        node: Any = self._tree
        for depth, part in enumerate(path):
            below = _child(node, part)
            if not isinstance(below, (MutableMapping, MutableSequence)):
                return
            if first[id(below)] != (id(node), str(part)):
                self._write_out(path[: depth + 1])
                return
            node = below

    def _write_out(self, path: KeyPath) -> None:
        """Replaces an alias or a merge by what it stands for; with it, all that is below."""
        self._assign(self._parent(path), path[-1], _for_pyyaml(self.get(path)))

    def text(self) -> str:
        """The whole file."""
        out = io.StringIO()
        self._yaml.dump(self._tree, out)
        return out.getvalue()


class JsonDocument(TreeDocument):
    """JSON, with the order of its keys."""

    def __init__(self, name: str, text: str) -> None:
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{name} is no JSON: {error}") from None
        super().__init__(name, tree)

    def _read(self) -> dict[str, Any]:
        copied = copy.deepcopy(self._tree)
        assert isinstance(copied, dict)
        return copied

    def text(self) -> str:
        """The whole file."""
        return json.dumps(self._tree, indent=4, ensure_ascii=False) + "\n"


class TextDocument(Document):
    """Lines `KEY=value` or `KEY: value`, as in shell scripts and ini files."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self._text = text

    def get(self, path: KeyPath, default: Any = None) -> Any:
        """The text behind the key, without its quotes, or the default where there is none."""
        found = self._lines(path)
        return found[0]["value"].strip("\"'") if len(found) == 1 else default

    def set(self, path: KeyPath, value: Any) -> None:
        """Changes what stands behind the key in its one line."""
        found = self._lines(path)
        if len(found) != 1:
            raise UserError(
                f"{self.name} has {len(found)} lines that begin with {'.'.join(path)}= or "
                f"{'.'.join(path)}: ; a key to set must have one"
            )
        start, end = found[0].span("value")
        quote = found[0]["quote"] or ""
        gap = " " if self._text[end : end + 1] == "#" else ""
        self._text = f"{self._text[:start]}{quote}{plain(value)}{quote}{gap}{self._text[end:]}"

    def text(self) -> str:
        """The whole file."""
        return self._text

    def _lines(self, path: KeyPath) -> list[re.Match[str]]:
        key = re.escape(".".join(path))
        return list(re.finditer(_LINE.format(key=key), self._text, re.MULTILINE))


def parse_document(name: str, text: str) -> Document:
    """A file by the ending of its name. Raises UserError."""
    suffix = PurePath(name).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return YamlDocument(name, text)
    if suffix == ".json":
        return JsonDocument(name, text)
    return TextDocument(name, text)


def _null(representer: Any, _: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


def _for_pyyaml(value: Any) -> Any:
    """The value so that PyYAML reads what was meant from its text."""
    if isinstance(value, Mapping):
        return {_for_pyyaml(key): _for_pyyaml(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_pyyaml(one) for one in value]
    if isinstance(value, float) and math.isfinite(value):
        digits, _, exponent = repr(value).partition("e")
        whole = digits if "." in digits else f"{digits}.0"
        return _PlainNumber(f"{whole}e{int(exponent):+03d}" if exponent else whole)
    if isinstance(value, str) and not isinstance(_read(value), str):
        return DoubleQuotedScalarString(value)
    return value


class _PlainNumber(str):
    """A number as it is to stand in the file."""


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text  # ruamel.yaml quotes it


def _number(representer: Any, value: _PlainNumber) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:float", str(value))


def _first_places(tree: Any) -> dict[int, tuple[int, str]]:
    """Where each mapping and list stands first: its parent's identity, and the key there."""
    places: dict[int, tuple[int, str]] = {}

    def visit(node: Any) -> None:
        for key, child in node.items() if isinstance(node, Mapping) else enumerate(node):
            if isinstance(child, (MutableMapping, MutableSequence)) and id(child) not in places:
                places[id(child)] = (id(node), str(key))
                visit(child)

    visit(tree)
    return places


def _child(node: Any, part: str) -> Any:
    if isinstance(node, MutableMapping):
        return node.get(_key_of(node, part), _NOTHING)
    if isinstance(node, MutableSequence) and part.isdecimal() and int(part) < len(node):
        return node[int(part)]
    return _NOTHING


def _assign(node: Any, part: str, value: Any) -> None:
    node[int(part) if isinstance(node, MutableSequence) else _key_of(node, part)] = value


def _key_of(node: Any, part: str) -> Any:
    """The key that is written so: in YAML `5:` is a number and `true:` a boolean."""
    if part in node:
        return part
    others = (key for key in node if key is None or isinstance(key, (bool, int, float)))
    return next((key for key in others if plain(key) == part), part)
