"""What a Megatron training program reads, as a copy that can be changed key by key.

A key is an option (`--micro-batch-size`) or a place in one of the files, by what the file is for:
`model:predictor.num_layers`, `data:dataloader_param.sampler_type`, `tool:profile.enable`,
`fsdp2:sharding_size`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from autotune.errors import UserError
from autotune.space.point import canonical
from launch.trainers.documents import TreeDocument, key_path, parse_document
from launch.trainers.mindspeed.megatron_arguments import Arguments, LineArguments, YamlArguments

CONFIG, MODEL, DATA, TOOL, FSDP2 = "config", "model", "data", "tool", "fsdp2"
PATH_OPTIONS: Mapping[str, str] = {
    MODEL: "--mm-model",
    DATA: "--mm-data",
    TOOL: "--mm-tool",
    FSDP2: "--fsdp2-config-path",
}
TOOL_PATH = "MM_TOOL_PATH"
"""Under this key the YAML of `pretrain_transformers.py` names the tool file."""


@dataclass(frozen=True)
class TextFile:
    """One of the user's files. name: as the launch names it."""

    name: str
    text: str


@dataclass(frozen=True)
class MegatronFiles:
    """words: what follows the program's name. files: by what they are for.

    With a `config` file, the YAML of `pretrain_transformers.py`, model and data are parts of it,
    and words after its name are dropped by the program.
    """

    words: tuple[str, ...]
    files: Mapping[str, TextFile]

    def open(self) -> OpenFiles:
        """A copy to change. Raises UserError for a file that cannot be read."""
        return OpenFiles(self)


class OpenFiles:
    """A copy of the arguments and files of a launch, changed in place."""

    def __init__(self, base: MegatronFiles) -> None:
        self._base = base
        self._documents = {role: _parsed(role, file) for role, file in base.files.items()}
        self._given = {role: document.data for role, document in self._documents.items()}
        config = self._documents.get(CONFIG)
        self.arguments: Arguments = (
            LineArguments(base.words) if config is None else YamlArguments(config)
        )

    def get(self, key: str, default: Any = None) -> Any:
        """The value at a key, a text for an option; the default where there is none, or null."""
        if key.startswith("--"):
            text = self.arguments.text(key)
            return default if text is None else text
        document, path = self._place(key)
        value = None if document is None else document.get(path)
        return default if value is None else value

    def holds(self, key: str) -> bool:
        """Whether the key is there, null or not."""
        if key.startswith("--"):
            return self.arguments.has(key)
        document, path = self._place(key)
        return document is not None and document.has(path)

    def put(self, key: str, value: Any) -> None:
        """Sets a key, which is added where there is none; one that says the same is left alone.

        For an option True makes a flag, None and False take it away. Raises UserError for a key
        of a file that the launch does not have.
        """
        if self._says(key, value):
            return
        if key.startswith("--"):
            self.arguments.put(key, value)
            return
        document, path = self._place(key)
        if document is None:
            role = key.partition(":")[0]
            raise UserError(
                f"{key} cannot be set: the launch names no {role} file; give it "
                f"{PATH_OPTIONS[role]} FILE"
            )
        document.put(path, value)

    @property
    def texts(self) -> dict[str, str]:
        """The files as they are now, by what they are for."""
        return {role: document.text() for role, document in self._documents.items()}

    @property
    def changed(self) -> dict[str, str]:
        """Those of them that say something else than the user's."""
        return {
            role: document.text()
            for role, document in self._documents.items()
            if canonical(document.data) != canonical(self._given[role])
        }

    @property
    def data(self) -> dict[str, Any]:
        """Arguments and files as plain data."""
        return {
            "arguments": self.arguments.as_mapping(),
            **{role: document.data for role, document in self._documents.items()},
        }

    def refer(self, role: str, path: str) -> None:
        """Makes the launch read a file from there."""
        if role == TOOL and CONFIG in self._documents:
            self._documents[CONFIG].put([TOOL_PATH], path)
        elif role != CONFIG:
            self.arguments.put(PATH_OPTIONS[role], path)

    def words(self, config: str | None = None) -> tuple[str, ...]:
        """What follows the program's name. config: where the YAML lies that has all of it."""
        if isinstance(self.arguments, LineArguments):
            return self.arguments.words
        return (config or self._base.words[0], *self._base.words[1:])

    def flat_words(self, instead: Mapping[str, str]) -> tuple[str, ...]:
        """The arguments of a YAML as the program flattens them. instead: values of options."""
        given = {**self.arguments.as_mapping(), **instead}
        return tuple(word for name, value in given.items() for word in _words_of(name, value))

    def suffix(self, role: str) -> str:
        """The ending of a file's name, by which the program knows its kind."""
        return PurePath(self._base.files[role].name).suffix

    def _place(self, key: str) -> tuple[TreeDocument | None, list[str]]:
        role, _, path = key.partition(":")
        document = self._documents.get(role)
        if document is not None:
            # A YAML given as --mm-model holds the model under that name, as for `config`.
            is_yaml = self.suffix(role) != ".json"
            inner = [role] if role in (MODEL, DATA) and is_yaml else []
            return document, [*inner, *key_path(path)]
        if role in (MODEL, DATA) and CONFIG in self._documents:
            return self._documents[CONFIG], [role, *key_path(path)]
        return None, []

    def _says(self, key: str, value: Any) -> bool:
        if key.startswith("--"):
            is_off = value is None or value is False
            wanted = None if is_off else "" if value is True else str(value)
            return self.arguments.text(key) == wanted
        document, path = self._place(key)
        if document is None or not document.has(path):
            return False
        return canonical(document.get(path)) == canonical(value)


def _words_of(name: str, value: Any) -> tuple[str, ...]:
    if value is True:
        return (name,)
    values = value if isinstance(value, list) else [value]
    return tuple(word for one in values for word in (name, str(one)))


def _parsed(role: str, file: TextFile) -> TreeDocument:
    document = parse_document(file.name, file.text)
    if not isinstance(document, TreeDocument):
        raise UserError(
            f"{file.name} is the {role} file of the launch, and neither JSON nor YAML by the "
            f"ending of its name ({PurePath(file.name).suffix or 'none'}); give .json or .yaml"
        )
    return document
