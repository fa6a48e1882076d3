"""Slow times count less than fast ones: how slow a bad point is does not matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.geometry import Floats

_LEAST_REACH = 0.2
_WEIGHT = 0.3


@dataclass(frozen=True)
class Compression:
    """Leaves values up to `bound` as they are and lets larger ones grow with their logarithm.

    A few points that take ten times as long would otherwise decide what the model sees as a
    difference worth knowing.
    """

    bound: float

    @classmethod
    def of(cls, values: Floats) -> Compression:
        """The bound lies as far above the median as the least value lies below it."""
        middle, low = float(np.median(values)), float(values.min())
        return cls(middle + max(middle - low, _LEAST_REACH))

    def __call__(self, values: Floats) -> Floats:
        """The values, elementwise; never out of order."""
        over = np.maximum(values - self.bound, 0.0)
        slow = _WEIGHT * _LEAST_REACH * np.log1p(over / _LEAST_REACH)
        return np.asarray(np.minimum(values, self.bound) + slow)
