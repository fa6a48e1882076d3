"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import UserError


def expanded(path: str, key: str) -> Path:
    """The path with `~` and `~user` replaced. key: where it was given. Raises UserError."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user, or nothing says where home is
        raise UserError(
            f"{key}={path}: nobody's home folder is there; give the whole path, such as "
            f"{key}=/home/{path.lstrip('~')}"
        ) from None
