"""How sure the sampler must be that a point runs, from how often it was wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.geometry import Floats


@dataclass(frozen=True)
class Risk:
    """A run that comes to nothing costs as much as one that teaches.

    free: failures that are forgiven, to find out where memory ends. share: of the failures that
    random search would have had, so many are accepted beyond them. sure: the probability of
    running that is asked for once there were more. unbounded: the weight of the probability of
    running while nothing has failed yet: a first failure shows where memory ends, and whoever
    only keeps away from the end does not find it.
    """

    free: float
    share: float = 0.35
    sure: float = 0.85
    unbounded: float = 0.5

    @classmethod
    def of(cls, slopes: Floats) -> Risk:
        """Where it is not known how any parameter changes memory, more must be found out."""
        return cls(free=1.0) if slopes.any() else cls(free=2.0, share=0.4, sure=0.8)

    def weight(self, failures: int) -> float:
        """How much the logarithm of the probability of running counts after these failures."""
        return 1.0 if failures else self.unbounded

    def allowed(self, launches: int, failures: int, runs: Floats) -> np.ndarray:
        """Which candidates (of bool) may be launched, given their probabilities of running.

        At least the surest of them.
        """
        random_failures = launches * float(1 - runs.mean())
        credit = self.free + self.share * random_failures - failures
        surest = float(runs.max())
        least = float(np.clip(1 - credit, 0.0, self.sure)) * surest**2
        return np.asarray(runs >= min(least, 0.98 * surest))
