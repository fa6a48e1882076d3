"""Figures that a person gives by name: None where one is missing, UserError for nonsense."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import UserError


@dataclass(frozen=True)
class Figures:
    """Values by name. where: what they belong to, for messages."""

    values: Mapping[str, Any]
    where: str

    def get(self, name: str) -> Any:
        """The value as it is, None where it is missing."""
        return self.values.get(name)

    def number(self, name: str, least: float | None = None) -> float | None:
        """A number above 0, or from `least` on. Raises UserError for anything else."""
        value = self.get(name)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(value) and (value > 0 if least is None else value >= least):
            return float(value)
        raise self._wrong(name, f"a number {'above 0' if least is None else f'from {least:g} on'}")

    def count(self, name: str) -> int | None:
        """A whole number from 1 on. Raises UserError for anything else."""
        value = self.number(name)
        if value is not None and value != int(value):
            raise self._wrong(name, "a whole number from 1 on")
        return None if value is None else int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean, `default` where it is missing. Raises UserError for anything else."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def _wrong(self, name: str, wanted: str) -> UserError:
        return UserError(
            f"{self.where}.{name}={self.get(name)!r} is not {wanted}; correct it, or leave it out "
            "if it is unknown"
        )
