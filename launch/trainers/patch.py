"""Copies of the user's files with some keys set, for programs that take their settings there."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from autotune.config.places import expanded
from autotune.errors import UserError
from autotune.space.expression import Expression
from launch.trainers.documents import Document, TreeDocument, key_path, parse_document
from launch.trainers.sources import Sources
from launch.trainers.template import Field, Template


@dataclass(frozen=True)
class Patch:
    """A copy of one of the user's files with some keys set.

    file: as the user named it. text: its content. settings: template by key; a key that begins
    with `+` may be new.
    """

    file: str
    text: str
    settings: Mapping[str, Template]

    @property
    def copy(self) -> str:
        """The name of the copy."""
        return PurePath(self.file).name

    def render(self, scope: Mapping[str, Any], active: Container[str]) -> str:
        """The copy. Raises UserError.

        A key stays as it is where a parameter of its template is not active, or its text is left
        out; a value that is null is set like others. active: names that have a value.
        """
        document = parse_document(self.file, self.text)
        for key, template in self.settings.items():
            value = template.value(scope)
            if value is not None or template.may_be_null(active):
                _put(document, key, value)
        return document.text()

    def require_keys(self) -> None:
        """Raises UserError for a key that the file does not have."""
        document = parse_document(self.file, self.text)
        for key in self.settings:
            _put(document, key, "")


def _put(document: Document, key: str, value: Any) -> None:
    path = key_path(key.removeprefix("+"))
    if key.startswith("+") and isinstance(document, TreeDocument):
        document.put(path, value)
    else:
        document.set(path, value)


def read_patches(
    entries: Mapping[str, Any], cwd: Path, sources: Sources, taken: Collection[str]
) -> dict[str, Patch]:
    """From `trainer.patch`. taken: names that a patch cannot have. Raises UserError."""
    patches: dict[str, Patch] = {}
    for name, entry in ((str(name), entry) for name, entry in entries.items()):
        patch = _patch(name, entry, cwd, sources, taken)
        if patch.copy in (other.copy for other in patches.values()):
            raise UserError(
                f"trainer.patch: two of the files are called {patch.copy}; copies lie in one "
                "folder, so give them different names"
            )
        patches[name] = patch
    return patches


def _patch(name: str, entry: object, cwd: Path, sources: Sources, taken: Collection[str]) -> Patch:
    where = f"trainer.patch.{name}"
    if not isinstance(entry, Mapping) or set(entry) != {"file", "set"}:
        raise UserError(
            f"{where}={entry!r} is no patch; write "
            f"{name}: {{file: config.yaml, set: {{some.key: '{{parameter}}'}}}}"
        )
    if name in taken or not name.isidentifier():
        raise UserError(f"{where}: {name!r} cannot be a patch's name; take a word such as config")
    settings = entry["set"]
    if not isinstance(settings, Mapping) or not settings:
        raise UserError(f"{where}.set={settings!r} names no key; write set: {{some.key: value}}")
    file = str(entry["file"])
    patch = Patch(
        file,
        sources.read(str(cwd / expanded(file, f"{where}.file")), f"{where}.file"),
        {str(key): _setting(value, f"{where}.set.{key}") for key, value in settings.items()},
    )
    patch.require_keys()
    return patch


def _setting(value: object, where: str) -> Template:
    if isinstance(value, str):
        return Template.parse(value, where)
    return Template((Field(Expression.parse(repr(value), where)),))
