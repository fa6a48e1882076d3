"""A JSON or YAML file that is read often and changed seldom.

Reading a key of a `YamlDocument` writes the whole file and parses it again, to see it as PyYAML
does; a launch is asked for hundreds of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.trainers.documents import KeyPath, TreeDocument

_NOTHING = object()


class Tree:
    """A document, and what it held when it was last changed."""

    def __init__(self, document: TreeDocument) -> None:
        self._document = document
        self._data: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """All of it as the program reads it; not to be changed."""
        if self._data is None:
            self._data = self._document.data
        return self._data

    def get(self, path: KeyPath, default: Any = None) -> Any:
        """The value at a key, or the default where there is none."""
        node: Any = self.data
        for part in path:
            node = _child(node, part)
            if node is _NOTHING:
                return default
        return node

    def has(self, path: KeyPath) -> bool:
        """Whether there is such a key."""
        return self.get(path, _NOTHING) is not _NOTHING

    def put(self, path: KeyPath, value: Any) -> None:
        """Changes the value of a key, which is added where there is none, with its parents."""
        self._document.put(path, value)
        self._data = None

    def remove(self, path: KeyPath) -> None:
        """Takes a key away; one that is not there is no error."""
        self._document.remove(path)
        self._data = None

    def text(self) -> str:
        """The whole file."""
        return self._document.text()


def _child(node: Any, part: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(part, _NOTHING)
    is_list = isinstance(node, Sequence) and not isinstance(node, str)
    if is_list and part.isdecimal() and int(part) < len(node):
        return node[int(part)]
    return _NOTHING
