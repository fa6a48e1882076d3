"""How long the sequences of a micro-batch are once they are padded.

Lengths are taken as log-normal with a known mean and spread, cut off at the longest sample.
All expectations are midpoint sums over quantiles, so that they are smooth and cheap.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UserError

BucketOrder = Literal["none", "bucketing", "reordering"]

_SHARES: NDArray[np.float64] = (np.arange(512) + 0.5) / 512
_NORMAL = statistics.NormalDist()
# Without a figure for the longest sample, about one in a thousand is longer than this share.
_LONGEST_SHARE = 0.999


@dataclass(frozen=True)
class LengthSpread:
    """The lengths of samples. mean, longest: positions. cv: standard deviation over mean."""

    mean: float
    cv: float = 0.0
    longest: float | None = None

    def __post_init__(self) -> None:
        if self.longest is not None and self.longest < self.mean:
            raise UserError(
                f"the longest sequence ({self.longest}) is shorter than the mean ({self.mean}); "
                "correct model.dims: *_length_max must be at least *_length"
            )

    @cached_property
    def most(self) -> float:
        """Positions of the longest sample, guessed from the spread where it is not given."""
        if self.longest is not None:
            return self.longest
        return float(self.quantiles(np.array([_LONGEST_SHARE]))[0])

    def quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lengths that so large a share of the samples does not exceed."""
        raw = self._log_normal(shares)
        if self.longest is None:
            return raw
        # Cutting off takes from the mean, which is known; what is left is stretched to it.
        kept = float(np.minimum(self._log_normal(_SHARES), self.longest).mean())
        stretched: NDArray[np.float64] = np.minimum(raw, self.longest) * (self.mean / kept)
        return np.minimum(stretched, self.longest)

    def _log_normal(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        variance = np.log1p(self.cv**2)
        normal = np.array([_NORMAL.inv_cdf(float(share)) for share in shares])
        values: NDArray[np.float64] = self.mean * np.exp(normal * np.sqrt(variance) - variance / 2)
        return values


@dataclass(frozen=True)
class PaddedLength:
    """The padded length of a random micro-batch: its first four moments about zero."""

    moments: tuple[float, float, float, float]

    @property
    def mean(self) -> float:
        """Expected positions."""
        return self.moments[0]

    @property
    def mean_square(self) -> float:
        """Expected square, which attention goes by."""
        return self.moments[1]

    def deviation(self, linear: float, quadratic: float) -> float:
        """Standard deviation of `linear * length + quadratic * length**2`."""
        first, second, third, fourth = self.moments
        variance = (
            linear**2 * (second - first**2)
            + 2 * linear * quadratic * (third - first * second)
            + quadratic**2 * (fourth - second**2)
        )
        return math.sqrt(max(variance, 0.0))


@lru_cache(maxsize=4096)
def padded_length(
    spread: LengthSpread, samples: int, order: BucketOrder, window: int | None
) -> PaddedLength:
    """Padded length of a micro-batch of `samples`, each as long as the longest of them.

    order: none takes samples as they come, so the length is the largest of independent ones;
    bucketing and reordering take neighbours of the sorted window. window: samples that are
    sorted together, None for very many.
    """
    if order == "none":
        lengths = spread.quantiles(_SHARES ** (1 / samples))
    elif window is None or window // samples < 1:
        lengths = spread.quantiles(_SHARES)
    else:
        buckets = window // samples
        last = (np.arange(buckets) + 1) * samples - 0.5
        lengths = spread.quantiles(last / (buckets * samples))
    return PaddedLength(tuple(float((lengths**power).mean()) for power in (1, 2, 3, 4)))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def largest_of_normals(count: int) -> float:
    """Expected largest of `count` independent standard normal values; 0 for one."""
    if count <= 1:
        return 0.0
    return statistics.fmean(_NORMAL.inv_cdf(float(share)) for share in _SHARES ** (1 / count))
