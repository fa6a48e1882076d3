"""What is expected from elsewhere, adjusted to what is measured here.

Bayesian linear regression of the measured values on the expected ones (Bishop, Pattern
Recognition and Machine Learning, 2006, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from autotune.search.guided.geometry import Codes, Floats

# Of the differences that are expected, about all are found here, give or take this share.
_SHARE_SPREAD = 0.4
_LARGEST_SHARE = 1.5
# The last bits of a value depend on the other rows it was worked out with.
_DIGITS = 10


@dataclass(frozen=True)
class Expectation:
    """Values of rows of codes, up to a level and a share that measured values tell.

    predict: rows -> mean and standard deviation (rows,). middle: of the values it was learnt
    from, around which differences are counted. level_spread: by how much the level is expected
    to be off. misfit: by how much a value is, level and share aside; both standard deviations.
    """

    predict: Callable[[Codes], tuple[Floats, Floats]]
    middle: float
    level_spread: float
    misfit: float
    _known: dict[bytes, tuple[float, float]] = field(default_factory=dict, repr=False)

    def adjusted(self, seen: Codes, measured: Floats, rows: Codes) -> Floats:
        """The values of rows, given those measured (seen,) at seen.

        Where what is measured contradicts what was expected, less and less of it is said, down
        to the same value everywhere.
        """
        level, share = self._adjustment(seen, measured)
        expected, _ = self._at(rows)
        return self.middle + level + share * (expected - self.middle)

    def _adjustment(self, seen: Codes, measured: Floats) -> tuple[float, float]:
        """What is to be added to the level, and the share of the differences."""
        if not len(seen):
            return 0.0, 1.0
        expected, deviation = self._at(seen)
        trust = 1 / (deviation**2 + self.misfit**2)
        away = expected - self.middle
        lines = np.column_stack([np.ones(len(away)), away])
        precision = (lines * trust[:, None]).T @ lines
        precision += np.diag([self.level_spread**-2, _SHARE_SPREAD**-2])
        found = np.linalg.solve(precision, lines.T @ (trust * (measured - expected)))
        share = float(np.clip(1 + found[1], 0.0, _LARGEST_SHARE))
        missed = measured - self.middle - share * away
        level = float(trust @ missed) / (trust.sum() + self.level_spread**-2)
        return level, share

    def _at(self, rows: Codes) -> tuple[Floats, Floats]:
        """Mean and standard deviation (rows,); each row is worked out once."""
        keys = [row.tobytes() for row in rows]
        new = {key: number for number, key in enumerate(keys) if key not in self._known}
        if new:
            means, deviations = self.predict(rows[list(new.values())])
            pairs = zip(means.round(_DIGITS).tolist(), deviations.tolist(), strict=True)
            self._known.update(zip(new, pairs, strict=True))
        found = np.array([self._known[key] for key in keys]).reshape(len(rows), 2)
        return found[:, 0], found[:, 1]
