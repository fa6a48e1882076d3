"""How likely a point is to run to its end within the limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.fit import Fitted
from autotune.search.guided.geometry import Codes, Floats
from autotune.search.guided.history import History
from autotune.search.guided.memory_model import MemoryModel, model_failures, model_memory

# After so many runs without a failure none is expected.
_TRUSTED_AFTER = 20


@dataclass(frozen=True)
class Usable:
    """parts: each may rule a point out; none where everything has run so far."""

    parts: tuple[MemoryModel, ...]

    def runs(self, rows: Codes) -> Floats:
        """Probability (rows,) that a point can be used."""
        probability = np.ones(len(rows))
        for part in self.parts:
            probability *= part.fits(rows)
        return probability


def model_usable(fitted: Fitted, slopes: Floats, history: History, knowledge: Knowledge) -> Usable:
    """From all runs, whatever they came to."""
    has_peaks = knowledge.limit_bytes is not None and bool(np.isfinite(history.peaks).any())
    if history.usable.all() and len(history) >= _TRUSTED_AFTER and not has_peaks:
        return Usable(())
    parts = [model_memory(fitted, slopes, history, knowledge)]
    if has_peaks and history.failed.any():
        parts.append(model_failures(fitted.kernel.geometry, history))
    return Usable(tuple(parts))
