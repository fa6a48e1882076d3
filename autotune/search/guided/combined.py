"""Two beliefs about one space, weighed by how well each foretold the runs so far.

Weights inverse to the mean squared errors (Bates and Granger, The Combination of Forecasts,
1969); each run is foretold from other runs only, since a belief may follow those it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from autotune.search.guided.belief import Belief
from autotune.search.guided.compression import Compression
from autotune.search.guided.geometry import Codes, Floats

# Before any run each counts as if it had missed so many runs by so much (e-folds): what was
# measured in an older study is trusted more than what a model says.
_PRIOR_RUNS = 3
_PRIOR_ERRORS = (0.1, 0.15)
_FOLDS = 4
_MOST_FORETOLD = 48
_KEPT = 8

_Foretell = Callable[[Codes, Floats, Codes], Floats | None]


@dataclass(frozen=True)
class CombinedBelief:
    """Implements `autotune.search.guided.belief.Belief`.

    first: is trusted more at first. Where one has no answer, that of the other counts.
    """

    first: Belief
    second: Belief
    _shares: dict[bytes, float] = field(default_factory=dict, repr=False)

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the batch time (rows,), given the seconds (seen,) of some rows."""
        scale = Compression.of(np.log(seconds)) if len(seconds) else None
        return self._combined(
            (self.first.log_seconds, self.second.log_seconds), seen, seconds, rows, scale
        )

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the peak memory (rows,), given the bytes (seen,) of some rows."""
        return self._combined((self.first.log_bytes, self.second.log_bytes), seen, peaks, rows)

    def _combined(
        self,
        beliefs: tuple[_Foretell, _Foretell],
        seen: Codes,
        measured: Floats,
        rows: Codes,
        scale: Compression | None = None,
    ) -> Floats | None:
        first, second = beliefs
        one = first(seen, measured, rows)
        if one is None:
            return second(seen, measured, rows)
        # Before the second is asked: beliefs remember what they were last asked about.
        share = self._share(beliefs, seen, measured, scale)
        other = second(seen, measured, rows)
        return one if other is None else np.asarray(share * one + (1 - share) * other)

    def _share(
        self,
        beliefs: tuple[_Foretell, _Foretell],
        seen: Codes,
        measured: Floats,
        scale: Compression | None,
    ) -> float:
        """Of the first; asked for several times in a row."""
        key = b"/".join([seen.tobytes(), measured.tobytes(), b"" if scale is None else b"time"])
        if key not in self._shares:
            if len(self._shares) >= _KEPT:
                self._shares.clear()
            one, other = (
                _mean_square(_errors(belief, seen, measured, scale), prior)
                for belief, prior in zip(beliefs, _PRIOR_ERRORS, strict=True)
            )
            self._shares[key] = other / (one + other)
        return self._shares[key]


def combined(first: Belief | None, second: Belief | None) -> Belief | None:
    """Both where there are two, else the one there is."""
    if first is None or second is None:
        return second if first is None else first
    return CombinedBelief(first, second)


def _errors(belief: _Foretell, seen: Codes, measured: Floats, scale: Compression | None) -> Floats:
    """By how much measured values were missed, each foretold from the other folds."""
    count = len(seen)
    if count < 2:
        return np.zeros(0)
    picked = np.unique(np.linspace(0, count - 1, min(count, _MOST_FORETOLD)).astype(int))
    rows, values, logs = seen[picked], measured[picked], np.log(measured[picked])
    fold = np.arange(len(picked)) % _FOLDS
    errors = []
    for number in range(min(_FOLDS, len(picked))):
        left_out = fold == number
        told = belief(rows[~left_out], values[~left_out], rows[left_out])
        if told is not None:
            found = logs[left_out]
            errors.append(told - found if scale is None else scale(told) - scale(found))
    return np.concatenate(errors) if errors else np.zeros(0)


def _mean_square(errors: Floats, prior: float) -> float:
    total = _PRIOR_RUNS * prior**2 + float(errors @ errors)
    return total / (_PRIOR_RUNS + len(errors))
