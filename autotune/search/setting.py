"""`search.sampler` and `search.seed`, checked without Optuna, which takes a second to import."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from autotune.errors import UserError, did_you_mean

NAMES = ("exhaustive", "gp", "guided", "random", "tpe")
_OF_GP = ("scipy", "torch")


def check_setting(setting: Any, seed: int) -> None:
    """Raises UserError for a name that no sampler has, or a seed that none takes.

    Whether a sampler of the user's own works is found out by `autotune.search.factory`.
    """
    if seed < 0:
        raise UserError(f"search.seed={seed} must be at least 0")
    if isinstance(setting, Mapping):
        return
    if str(setting) not in NAMES:
        raise UserError(
            f"search.sampler={str(setting)!r} is neither a name nor a mapping with _target_ for an "
            f"Optuna sampler of your own; {did_you_mean(str(setting), NAMES)}"
        )
    if setting == "gp":
        _check_gp()


def _check_gp() -> None:
    missing = [name for name in _OF_GP if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"search.sampler=gp needs {' and '.join(missing)}; "
            f"type pip install {' '.join(_OF_GP)}, or take search.sampler=tpe"
        )
