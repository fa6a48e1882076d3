"""The cost model as a belief of the guided sampler, calibrated by the runs so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.predict.calibrated import CalibratedModel
from autotune.predict.cost_model import CostModel

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]


@dataclass
class CostBelief:
    """Implements `autotune.search.guided.belief.Belief`. Terms are worked out once a row."""

    model: CostModel
    _time: dict[bytes, Floats] = field(default_factory=dict)
    _memory: dict[bytes, Floats] = field(default_factory=dict)
    _fits: dict[str, tuple[bytes, CalibratedModel]] = field(default_factory=dict)

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the batch time (rows,), given the seconds (seen,) of some rows."""
        prior = self.model.time_prior
        terms = self._terms(self._time, self.model.time_terms, seen, len(prior))
        fitted = self._fit("time", terms, seconds, prior)
        return fitted.predict(self._terms(self._time, self.model.time_terms, rows, len(prior)))

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the peak memory (rows,), given the bytes (seen,) of some rows."""
        prior = self.model.memory_prior
        terms = self._terms(self._memory, self.model.memory_terms, seen, len(prior))
        fitted = self._fit("memory", terms, peaks, prior)
        return fitted.predict(self._terms(self._memory, self.model.memory_terms, rows, len(prior)))

    def _fit(self, of: str, terms: Floats, measured: Floats, prior: Floats) -> CalibratedModel:
        """The weights of these runs; asked for several times in a row."""
        key = terms.tobytes() + measured.tobytes()
        if of not in self._fits or self._fits[of][0] != key:
            self._fits[of] = (key, CalibratedModel.fit(terms, measured, prior))
        return self._fits[of][1]

    @staticmethod
    def _terms(
        known: dict[bytes, Floats], make: Callable[[Codes], Floats], rows: Codes, width: int
    ) -> Floats:
        keys = [row.tobytes() for row in rows]
        missing = [number for number, key in enumerate(keys) if key not in known]
        if missing:
            made = make(rows[missing])
            known.update((keys[number], row) for number, row in zip(missing, made, strict=True))
        return np.array([known[key] for key in keys]).reshape(len(rows), width)
