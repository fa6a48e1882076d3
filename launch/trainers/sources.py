"""The user's own files that a trainer starts from, read once and kept with the study.

What is read is kept in the study's `config.yaml`: a study can be exported and resumed by what it
began with, and a file that changed makes another study.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.config.places import expanded
from autotune.errors import UserError, did_you_mean

COMMIT = "commit"
"""Under this name the commit of the checkout is kept."""

_MOST_BYTES = 4 << 20


class Sources:
    """Text files below a folder, by their path relative to it or absolute.

    root: the user's checkout, None where there is none. kept: what was read before; then nothing
    is read from disk.
    """

    def __init__(self, root: str | None, kept: Mapping[str, str] | None = None) -> None:
        self._root = None if root is None else expanded(root, "trainer.root")
        self._kept = dict(kept) if kept else None
        self._used: dict[str, str] = {}

    @property
    def used(self) -> Mapping[str, str]:
        """What was read, by name."""
        return dict(self._used)

    @property
    def is_kept(self) -> bool:
        """Whether a study has begun with these: then nothing new is asked of it."""
        return self._kept is not None

    @property
    def root(self) -> Path:
        """The checkout, absolute. Raises UserError where none is given or there is no folder."""
        if self._root is None:
            raise UserError(
                "trainer.root is not given; give the folder of your checkout, such as "
                "trainer.root=~/MindSpeed-MM"
            )
        if self._kept is None and not self._root.is_dir():
            raise UserError(
                f"trainer.root={self._root} is no folder; give the folder of your checkout"
            )
        return self._root.absolute()

    def find(self, name: str) -> str | None:
        """The text of a file, None where there is no such file. Raises UserError."""
        text = self._kept.get(name) if self._kept is not None else _text_of(self.path(name))
        if text is not None:
            self._used[name] = text
        return text

    def read(self, name: str, key: str) -> str:
        """The text of a file that must be there; `key` is what names it. Raises UserError."""
        text = self.find(name)
        if text is not None:
            return text
        path = self.path(name)
        there = _names_beside(path)
        hint = did_you_mean(path.name, there) if there else f"there is no folder {path.parent}"
        raise UserError(f"{key}={name}: there is no file {path}; {hint}")

    def has(self, name: str) -> bool:
        """Whether there is such a file; one that was there when the study began is."""
        return self._kept is not None or self.path(name).is_file()

    def path(self, name: str) -> Path:
        """Where a file lies."""
        path = expanded(name, "a path")
        return path if path.is_absolute() else self.root / path

    def keep(self, name: str, value: str) -> str:
        """What the value was when the study began; it is kept like a file's text."""
        if self._kept is not None:
            value = self._kept.get(name, value)
        self._used[name] = value
        return value

    def commit(self) -> str | None:
        """The commit that is checked out, 40 hexadecimal digits; None where git does not say."""
        found = self._kept.get(COMMIT) if self._kept is not None else checked_out(self.root)
        if found is not None:
            self._used[COMMIT] = found
        return found


def checked_out(root: Path) -> str | None:
    """The commit of a git work tree, from git's files; None where it is none.

    Source: gitrepository-layout(5).
    """
    git = root / ".git"
    if git.is_file():  # a linked work tree or a submodule
        git = root / (_text_of(git) or "").removeprefix("gitdir:").strip()
    head = (_text_of(git / "HEAD") or "").strip()
    if not head.startswith("ref:"):
        return head or None
    name = head.removeprefix("ref:").strip()
    common = git / (_text_of(git / "commondir") or ".").strip()
    for folder in (git, common):
        if loose := _text_of(folder / name):
            return loose.strip()
    for line in (_text_of(common / "packed-refs") or "").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return None


def _text_of(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path} is larger than {_MOST_BYTES} bytes; is it the right file?")
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8; is it the right file?") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _names_beside(path: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    except OSError:
        return []
