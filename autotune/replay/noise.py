"""Noise that is planted on a recorded table: no two runs of a point take the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.errors import UserError, did_you_mean

_KEYS = ("share", "factor")
_LARGEST_FACTOR = 1000.0


@dataclass(frozen=True)
class RunNoise:
    """relative_sd: standard deviation of the logarithm of a run's time. share: of the runs,
    how many are disturbed and take `factor` times as long.
    """  # noqa: D205 (the fields are the summary)

    relative_sd: float = 0.0
    share: float = 0.0
    factor: float = 1.7

    @classmethod
    def parse(cls, noise: Any, outliers: Any, outlier_factor: Any) -> RunNoise:
        """From the keys of `replay` with these names. Raises UserError."""
        given = outliers if isinstance(outliers, Mapping) else {"share": outliers}
        for key in given:
            if key not in _KEYS:
                close = did_you_mean(str(key), _KEYS)
                raise UserError(f"unknown key replay.outliers.{key}; {close}")
        sd = _number("replay.noise", noise)
        share = _number("replay.outliers", given.get("share", 0.0))
        factor = _number("replay.outlier_factor", given.get("factor", outlier_factor))
        if not 0 <= sd < 1:
            raise UserError(
                f"replay.noise={sd} must be at least 0 and less than 1; half a per cent is 0.005"
            )
        if not 0 <= share < 1:
            raise UserError(
                f"replay.outliers={share} must be at least 0 and less than 1; one run in ten is 0.1"
            )
        if not 1 <= factor <= _LARGEST_FACTOR:
            raise UserError(
                f"replay.outlier_factor={factor} must be at least 1 and at most "
                f"{_LARGEST_FACTOR:g}, such as 1.7"
            )
        return cls(sd, share, factor)

    @property
    def is_planted(self) -> bool:
        """Whether two runs of a point may differ."""
        return self.relative_sd > 0 or (self.share > 0 and self.factor > 1)

    def of_launch(self, seed: int, launch: int) -> float:
        """By what a launch's true time is multiplied: the same for the same seed and launch."""
        if not self.is_planted:
            return 1.0
        random = np.random.default_rng((seed, launch))
        usual = math.exp(self.relative_sd * random.standard_normal())
        return usual * (self.factor if random.random() < self.share else 1.0)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{key}={value!r} must be a number, such as 0.1")
    return float(value)
