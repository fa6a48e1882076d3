"""How likely a point is to run within the memory limit.

The function that is learned is the headroom of a point: the natural logarithm of the limit
over the peak, above 0 where it fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.fit import Fitted, KernelPrior, fit_kernel
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History
from autotune.search.guided.kernel import Amplitudes
from autotune.search.guided.margin import Evidence, Margin

# Activations go with the product of degrees and batch sizes, so headroom is mostly a sum of
# straight lines over powers of two.
PRIOR = KernelPrior(
    length=1.0,
    amplitudes=Amplitudes(constant=0.7, slope=0.8, main=0.6, pair=0.25, joint=0.25),
    noise=0.02,
)
# Around what a cost model says of memory.
PRIOR_AROUND_BELIEF = KernelPrior(
    length=1.0,
    amplitudes=Amplitudes(constant=0.3, slope=0.1, main=0.1, pair=0.05, joint=0.05),
    noise=0.02,
)
# Where only "fits" and "does not" is known, the side of a point is told by so much: beyond
# the straight lines there is more that decides.
_SIDE_NOISE = 0.35
# There, what any parameter with a known direction does, from its middle to its end.
_SIDE_SLOPE = 1.05
_LEAST_FITTED = 5
_MOST_FITTED = 64
_MOST_KEPT = 150
_LATEST = 50


@dataclass(frozen=True)
class MemoryModel:
    """Headroom of points, from peaks and from runs that did not fit."""

    margin: Margin
    offset: _Offset

    def fits(self, rows: Codes) -> Floats:
        """Probability (rows,) of running within the limit."""
        return self.margin.above(rows, self.offset.at(rows))

    def headroom(self, rows: Codes) -> tuple[Floats, Floats]:
        """Mean and standard deviation (rows,) of the headroom."""
        mean, variance = self.margin.predict(rows, self.offset.at(rows))
        return mean, np.sqrt(variance)


@dataclass(frozen=True)
class _Offset:
    """The headroom that is expected before any run."""

    geometry: Geometry
    slopes: tuple[Floats, ...]
    knowledge: Knowledge
    seen: Codes
    peaks: Floats

    def at(self, rows: Codes) -> Floats:
        believed = self.believed(rows)
        if believed is not None:
            return believed
        total = np.zeros(len(rows))
        here = self.geometry.positions(rows)
        for number, slope in enumerate(self.slopes):
            total += slope[here[:, number]]
        return total

    def believed(self, rows: Codes) -> Floats | None:
        """The headroom that is believed in, None where nothing is."""
        limit, belief = self.knowledge.limit_bytes, self.knowledge.belief
        if limit is None or belief is None:
            return None
        log_bytes = belief.log_bytes(self.seen, self.peaks, rows)
        return None if log_bytes is None else np.asarray(math.log(limit) - log_bytes)


def fit_memory(
    geometry: Geometry, slopes: Floats, history: History, knowledge: Knowledge
) -> Fitted:
    """The kernel of the peaks of a history, where enough of them are known."""
    known = np.flatnonzero(_known(history, knowledge))[-_MOST_FITTED:]
    offset = _offset(geometry, slopes, history, knowledge)
    prior = PRIOR if offset.believed(history.rows[:1]) is None else PRIOR_AROUND_BELIEF
    if len(known) < _LEAST_FITTED:
        return Fitted(prior.kernel(geometry), prior.noise)
    rows = history.rows[known]
    values = _headroom(history, knowledge)[known] - offset.at(rows)
    return fit_kernel(geometry, rows, values - values.mean(), np.ones(len(known)), prior)


def model_memory(
    fitted: Fitted, slopes: Floats, history: History, knowledge: Knowledge
) -> MemoryModel:
    """What the runs of a history say about memory.

    Where no peak is known, runs that failed for another reason count as such that did not
    fit: what is like them is likely to come to nothing too.
    """
    of_memory = history.usable | history.out_of_memory
    known = _known(history, knowledge)
    kept = _kept(np.flatnonzero(of_memory) if known.any() else np.arange(len(history)))
    rows, known = history.rows[kept], known[kept]
    evidence = Evidence(
        rows=rows,
        values=_headroom(history, knowledge)[kept],
        known=known,
        sides=np.where(history.usable[kept], 1.0, -1.0),
        noise=fitted.noise,
        side_noise=fitted.noise if known.any() else _SIDE_NOISE,
    )
    offset = _offset(fitted.kernel.geometry, slopes, history, knowledge)
    return MemoryModel(Margin.of(fitted.kernel, evidence, offset.at(rows)), offset)


def _offset(geometry: Geometry, slopes: Floats, history: History, knowledge: Knowledge) -> _Offset:
    known = _known(history, knowledge)
    # Without a peak headroom has no scale: what counts is that every direction counts alike.
    steep = slopes if known.any() else _SIDE_SLOPE * np.sign(slopes)
    expected = tuple(
        -slope * ranks
        for slope, ranks in zip(steep[list(geometry.columns)], geometry.ranks, strict=True)
    )
    return _Offset(geometry, expected, knowledge, history.rows[known], history.peaks[known])


def _known(history: History, knowledge: Knowledge) -> np.ndarray:
    """Runs whose peak is that of a whole run: one that ran out of memory did not get there."""
    if knowledge.limit_bytes is None:
        return np.zeros(len(history), dtype=bool)
    whole = history.usable | (np.isfinite(history.seconds) & history.out_of_memory)
    return np.asarray(np.isfinite(history.peaks) & whole)


def _headroom(history: History, knowledge: Knowledge) -> Floats:
    if knowledge.limit_bytes is None:
        return np.full(len(history), np.nan)
    return np.asarray(math.log(knowledge.limit_bytes) - np.log(history.peaks))


def _kept(runs: np.ndarray) -> np.ndarray:
    """At most so many runs: the latest ones, the rest spread evenly."""
    count = len(runs)
    if count <= _MOST_KEPT:
        return runs
    older = np.linspace(0, count - _LATEST - 1, _MOST_KEPT - _LATEST).astype(int)
    return np.concatenate([runs[older], runs[count - _LATEST :]])


def model_failures(geometry: Geometry, history: History) -> MemoryModel:
    """How likely points are to run at all, from runs that failed for another reason than memory.

    Only the sides are known, and nothing beforehand.
    """
    blind = Knowledge()
    ran = History(
        rows=history.rows,
        seconds=history.seconds,
        peaks=history.peaks,
        usable=history.usable | history.out_of_memory,
        out_of_memory=history.failed,
        rough=history.rough,
        pending=history.pending,
    )
    fitted = Fitted(PRIOR.kernel(geometry), PRIOR.noise)
    return model_memory(fitted, np.zeros(history.rows.shape[1]), ran, blind)
