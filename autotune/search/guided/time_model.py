"""Seconds a batch of points that were not measured, from those that were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.compression import Compression
from autotune.search.guided.fit import Fitted, KernelPrior, fit_kernel
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History
from autotune.search.guided.kernel import Amplitudes
from autotune.search.guided.regression import Regression

# In units of the spread of the logarithms of the measured times. The first expects that
# parameters act mostly each for itself, the second that what is near alike counts, and that
# runs of one point hardly differ.
PRIORS = (
    KernelPrior(
        length=1.0,
        amplitudes=Amplitudes(constant=1.0, slope=0.0, main=0.7, pair=0.4, joint=0.4),
        noise=0.05,
    ),
    KernelPrior(
        length=0.5,
        amplitudes=Amplitudes(constant=1.0, slope=0.0, main=0.5, pair=0.5, joint=0.7),
        noise=0.01,
    ),
)
# Logarithms of a study's times spread at least so much, whatever the first few say; and so
# much around what is believed of them.
_LEAST_SPREAD = 0.3
_LEAST_SPREAD_AROUND_BELIEF = 0.1
# A run that was stopped early tells its time with so many times the usual noise variance.
_ROUGH = 9.0
_LEAST_FITTED = 3
_MOST_FITTED = 128
_MOST_KEPT = 300


@dataclass(frozen=True)
class TimeModel:
    """Predicts the compressed logarithm of the seconds a batch.

    belief: what is expected at rows beforehand. level, spread: of what was measured beyond it.
    """

    regression: Regression
    belief: _Expected
    level: float
    spread: float

    def predict(self, rows: Codes) -> tuple[Floats, Floats]:
        """Mean and standard deviation (rows,)."""
        mean, variance = self.regression.predict(rows)
        return self.belief.at(rows) + self.level + self.spread * mean, self.spread * np.sqrt(
            variance
        )


@dataclass(frozen=True)
class _Expected:
    """The compressed logarithm of the seconds, as it is believed to be given some runs."""

    knowledge: Knowledge
    compression: Compression
    seen: Codes
    seconds: Floats

    def at(self, rows: Codes) -> Floats:
        believed = self._believed(rows)
        return np.zeros(len(rows)) if believed is None else self.compression(believed)

    def has_answer(self) -> bool:
        return self._believed(self.seen[:1]) is not None

    def _believed(self, rows: Codes) -> Floats | None:
        if self.knowledge.belief is None:
            return None
        return self.knowledge.belief.log_seconds(self.seen, self.seconds, rows)


@dataclass(frozen=True)
class _Measured:
    """Runs with a time, in units of their spread."""

    rows: Codes
    values: Floats
    noise_scale: Floats
    belief: _Expected
    level: float
    spread: float


def fit_time(geometry: Geometry, history: History, knowledge: Knowledge) -> Fitted:
    """The kernel of the times of a history, in units of their spread."""
    measured = _measured(history, knowledge, _MOST_FITTED)
    if measured is None or len(measured.values) < _LEAST_FITTED:
        return Fitted(PRIORS[0].kernel(geometry), PRIORS[0].noise)
    fits = [
        fit_kernel(geometry, measured.rows, measured.values, measured.noise_scale, prior)
        for prior in PRIORS
    ]
    return min(fits, key=lambda fitted: fitted.loss)


def model_time(fitted: Fitted, history: History, knowledge: Knowledge) -> TimeModel | None:
    """What the times of a history say, None while there is none.

    Points that run now count as if they took what is expected of them (kriging believer,
    Ginsbourger et al., 2010).
    """
    measured = _measured(history, knowledge, _MOST_KEPT)
    if measured is None:
        return None
    noise = fitted.noise**2 * measured.noise_scale
    regression = Regression.of(fitted.kernel, measured.rows, measured.values, noise)
    if len(history.pending):
        expected, _ = regression.predict(history.pending)
        regression = Regression.of(
            fitted.kernel,
            np.vstack([measured.rows, history.pending]),
            np.concatenate([measured.values, expected]),
            np.concatenate([noise, np.full(len(history.pending), fitted.noise**2)]),
        )
    return TimeModel(regression, measured.belief, measured.level, measured.spread)


def left_out_times(fitted: Fitted, history: History, knowledge: Knowledge) -> tuple[Floats, Floats]:
    """Mean and standard deviation (runs,) of each run's value, as the other runs predict it."""
    measured = _measured(history, knowledge, len(history))
    assert measured is not None, "a history of runs with a time"
    noise = fitted.noise**2 * measured.noise_scale
    regression = Regression.of(fitted.kernel, measured.rows, measured.values, noise)
    mean, variance = regression.left_out(measured.values)
    expected = measured.belief.at(measured.rows) + measured.level + measured.spread * mean
    return expected, measured.spread * np.sqrt(variance)


def _measured(history: History, knowledge: Knowledge, most: int) -> _Measured | None:
    timed = np.flatnonzero(np.isfinite(history.seconds))
    if not len(timed):
        return None
    compression = Compression.of(np.log(history.seconds[timed]))
    kept = _fastest_and_others(history, timed, most)
    rows, seconds = history.rows[kept], history.seconds[kept]
    belief = _Expected(knowledge, compression, rows, seconds)
    values = compression(np.log(seconds)) - belief.at(rows)
    level = float(values.mean())
    least = _LEAST_SPREAD_AROUND_BELIEF if belief.has_answer() else _LEAST_SPREAD
    spread = max(float(values.std()), least)
    noise_scale = np.where(history.rough[kept], _ROUGH, 1.0)
    return _Measured(rows, (values - level) / spread, noise_scale, belief, level, spread)


def _fastest_and_others(history: History, timed: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the runs: half of them the fastest, the rest spread evenly."""
    if len(timed) <= most:
        return timed
    by_time = timed[np.argsort(history.seconds[timed], kind="stable")]
    fastest, others = by_time[: most // 2], by_time[most // 2 :]
    spread = others[np.linspace(0, len(others) - 1, most - len(fastest)).astype(int)]
    return np.sort(np.concatenate([fastest, spread]))
