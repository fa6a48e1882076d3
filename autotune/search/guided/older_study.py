"""What an older study says about the points of a new one.

Two Gaussian processes, of the time and of the headroom in memory, learn from the older runs
which points are better than which. How much that comes to here, the new study's own runs tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.measure.outcome import Status
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.compression import Compression
from autotune.search.guided.expectation import Expectation
from autotune.search.guided.fit import Fitted, fit_kernel
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History
from autotune.search.guided.margin import Evidence, Margin
from autotune.search.guided.memory_model import PRIOR
from autotune.search.guided.shared_space import SharedSpace
from autotune.search.guided.time_model import fit_time, model_time
from autotune.space.definition import Parameter

_TIMED = (Status.OK, Status.STOPPED, Status.OVER_LIMIT)
_LEAST_RUNS = 6
# By how many e-folds the level may well differ, and that of memory on the same scale.
_LEVEL_SPREAD = 2.0
_SAME_LEVEL_SPREAD = 0.3
# By how much two studies differ from point to point, beside the level.
_TIME_MISFIT = 0.15
_MEMORY_MISFIT = 0.1
_MOST_FITTED = 64
_MOST_KEPT = 150


@dataclass(frozen=True)
class OlderRun:
    """A run of the older study. seconds, peak_bytes: None where it has no such value."""

    values: Mapping[str, Any]
    status: Status
    seconds: float | None
    peak_bytes: float | None


@dataclass(frozen=True)
class OlderStudyBelief:
    """Implements `autotune.search.guided.belief.Belief`.

    memory: None where too few peaks are known. is_same_scale: whether bytes there are bytes
    here; otherwise nothing is said of memory before a run here has told its peak.
    """

    space: SharedSpace
    time: Expectation
    memory: Expectation | None
    is_same_scale: bool

    @classmethod
    def of(
        cls, runs: Sequence[OlderRun], newer: Sequence[Parameter], is_same_scale: bool
    ) -> OlderStudyBelief | None:
        """What the runs tell a study with these parameters; None where that is too little.

        Too little are fewer than six runs with a time, or no shared parameter that varied.
        """
        told = [run for run in runs if _tells(run)]
        if sum(run.seconds is not None for run in told) < _LEAST_RUNS:
            return None
        space = SharedSpace.of([run.values for run in told], newer)
        if space is None:
            return None
        history = _history(told, space)
        level_spread = _SAME_LEVEL_SPREAD if is_same_scale else _LEVEL_SPREAD
        memory = _memory(space, history, level_spread)
        return cls(space, _time(space, history), memory, is_same_scale)

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the batch time (rows,), given the seconds (seen,) of some rows."""
        logs = np.log(seconds)
        measured = Compression.of(logs)(logs) if len(logs) else logs
        here = self.space.newer_rows
        return self.time.adjusted(here(seen), measured, here(rows))

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        """The logarithm of the peak memory (rows,), given the bytes (seen,) of some rows."""
        if self.memory is None or not (len(seen) or self.is_same_scale):
            return None
        here = self.space.newer_rows
        return self.memory.adjusted(here(seen), np.log(peaks), here(rows))


def _tells(run: OlderRun) -> bool:
    """Whether the run came to a time, or used up the memory of its device."""
    return run.status is Status.OOM or (run.seconds is not None and run.status in _TIMED)


def _history(runs: Sequence[OlderRun], space: SharedSpace) -> History:
    rows = space.older_rows([run.values for run in runs])
    return History(
        rows=rows,
        seconds=np.array([np.nan if run.seconds is None else run.seconds for run in runs]),
        peaks=np.array([run.peak_bytes or np.nan for run in runs]),
        usable=np.array([not run.status.violates_memory for run in runs]),
        out_of_memory=np.array([run.status.violates_memory for run in runs]),
        rough=np.array([run.status is Status.STOPPED for run in runs]),
        pending=rows[:0],
    )


def _time(space: SharedSpace, history: History) -> Expectation:
    fitted = fit_time(space.geometry, history, Knowledge())
    model = model_time(fitted, history, Knowledge())
    assert model is not None, "some runs have a time"
    return Expectation(model.predict, model.level, _LEVEL_SPREAD, _TIME_MISFIT)


def _memory(space: SharedSpace, history: History, level_spread: float) -> Expectation | None:
    """Of the logarithm of the peaks; runs that used up the device had the largest of all."""
    died = ~np.isfinite(history.seconds)
    whole = np.isfinite(history.peaks) & ~died
    if whole.sum() < _LEAST_RUNS:
        return None
    logs = np.log(history.peaks[whole])
    level, largest = float(logs.mean()), float(logs.max())
    fitted = _fit(space.geometry, history.rows[whole], logs - level)
    kept = _spread_evenly(np.flatnonzero(whole | died), _MOST_KEPT)
    evidence = Evidence(
        rows=history.rows[kept],
        values=largest - np.log(np.where(whole, history.peaks, 1.0)[kept]),
        known=whole[kept],
        sides=np.full(len(kept), -1.0),
        noise=fitted.noise,
        side_noise=fitted.noise,
    )
    offset = np.full(len(kept), largest - level)
    peaks = _Peaks(Margin.of(fitted.kernel, evidence, offset), level, largest)
    return Expectation(peaks.predict, level, level_spread, _MEMORY_MISFIT)


def _fit(geometry: Geometry, rows: Codes, values: Floats) -> Fitted:
    some = _spread_evenly(np.arange(len(rows)), _MOST_FITTED)
    return fit_kernel(geometry, rows[some], values[some], np.ones(len(some)), PRIOR)


def _spread_evenly(runs: np.ndarray, most: int) -> np.ndarray:
    places = np.linspace(0, len(runs) - 1, min(len(runs), most)).astype(int)
    return np.asarray(runs[np.unique(places)])


@dataclass(frozen=True)
class _Peaks:
    """Headroom under the largest peak that is known -> the logarithm of the peak.

    level: mean of the logarithms of the peaks, largest: the largest of them.
    """

    margin: Margin
    level: float
    largest: float

    def predict(self, rows: Codes) -> tuple[Floats, Floats]:
        """Mean and standard deviation (rows,)."""
        headroom, variance = self.margin.predict(
            rows, np.full(len(rows), self.largest - self.level)
        )
        return self.largest - headroom, np.sqrt(variance)
