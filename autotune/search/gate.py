"""The memory gate: a point whose peak will exceed the limit is not launched.

It decides from the finished trials alone, so that a resumed study decides as the unbroken one
would. About one refusal in ten is launched all the same: a gate that nothing contradicts could
be wrong for ever.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from autotune.config.quantities import format_bytes
from autotune.search.dominance import Dominance
from autotune.search.encoding import Encoding
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.epochs import epoch_start
from autotune.search.guided.fit import Fitted
from autotune.search.guided.geometry import Codes, Geometry
from autotune.search.guided.history import History, HistoryReader
from autotune.search.guided.memory_model import MemoryModel, fit_memory, model_memory
from autotune.search.guided.vocabulary import memory_slopes
from autotune.search.point_sampler import CHECKED_ATTRIBUTE, was_launched
from autotune.space.point import Point

# A point is refused where it fits with a smaller probability than this.
_LEAST_FITS = 0.05
# With fewer peaks of whole runs a prediction is not calibrated, and refuses nothing.
_LEAST_PEAKS = 3
_CHECKED_EVERY = 10
_NORMAL_975 = 1.96
# Logarithms of peak over limit beyond which a prediction is no use to anybody.
_FARTHEST = 30.0
# Rows are looked at in parts that grow: mostly one of the first passes.
_FIRST_PART, _GROWTH, _LARGEST_PART = 64, 4, 4096
_MOST_LOOKED_AT = 100_000
Made = TypeVar("Made")


@dataclass(frozen=True)
class Forecast:
    """What is expected of a point's memory.

    fits: probability of staying within the limit. peak_bytes: median of the predicted peak,
    with its 95 % interval.
    """

    fits: float
    peak_bytes: float
    peak_ci95_bytes: tuple[float, float]


@dataclass(frozen=True)
class Refusal:
    """Why a point is not launched.

    fits: probability that it fits after all, 0 where it follows from a run and what the space
    file says of memory. forecast: None where no prediction is calibrated. reason: for a person.
    """

    fits: float
    forecast: Forecast | None
    reason: str


@dataclass(frozen=True)
class MemoryGate:
    """The gate at one moment. model: None as long as it is not calibrated.

    noise: standard deviation of the logarithm of one run's peak. since_check: trials that were
    launched after the last refused point that was, to check the gate.
    """

    encoding: Encoding
    seed: int
    limit_bytes: float | None
    dominance: Dominance
    model: MemoryModel | None = None
    noise: float = 0.0
    since_check: int = 0

    @property
    def check_is_due(self) -> bool:
        """Whether a refused point should be launched: one in so many trials is."""
        return self.since_check >= _CHECKED_EVERY

    def refused(self, rows: Codes) -> NDArray[np.bool_]:
        """Which of the rows, as in `LegalSpace.codes`, are not to be launched: (rows,)."""
        refused = self.dominance.dominated(rows)
        if self.model is not None and len(rows):
            refused |= self.model.fits(rows) < _LEAST_FITS
        return refused

    def refusal(self, point: Point) -> Refusal | None:
        """Why the point is not to be launched, None where it may be."""
        row = self.encoding.row_of(point)
        forecast = self._forecast(row)
        violator = self.dominance.violator(row)
        if violator is not None:
            known = self.encoding.space.decode(violator)
            reason = (
                f"it needs at least the memory of a point that did not fit ({known}), as the "
                "space's memory hints say"
            )
            return Refusal(0.0, forecast, reason)
        if forecast is None or forecast.fits >= _LEAST_FITS:
            return None
        return Refusal(forecast.fits, forecast, self._too_large(forecast))

    def forecast(self, point: Point) -> Forecast | None:
        """What is expected of the point, None as long as the prediction is not calibrated."""
        return self._forecast(self.encoding.row_of(point))

    def is_checked(self, point: Point) -> bool:
        """Whether the point is launched even if it is refused: the same at any time."""
        digest = hashlib.sha256(f"{self.seed}/gate/{point.key}".encode()).digest()
        return int.from_bytes(digest[:4], "big") % _CHECKED_EVERY == 0

    def likeliest(self, rows: Codes) -> int:
        """Which of the rows fits with the largest probability; what dominance rules out last."""
        chances = np.zeros(len(rows)) if self.model is None else self.model.headroom(rows)[0]
        return int(np.argmax(np.where(self.dominance.dominated(rows), -np.inf, chances)))

    def some_admitted(self, rows: Codes, seed: int, most: int = 1) -> Codes:
        """Rows that are not refused, in any order, at most so many; none only if there are none.

        Of more than 100,000 rows so many are looked at, any of them.
        """
        order = np.random.default_rng(seed).permutation(len(rows))[:_MOST_LOOKED_AT]
        found, start, size = rows[:0], 0, _FIRST_PART
        while len(found) < most and start < len(order):
            part = rows[order[start : start + size]]
            found = np.vstack([found, part[~self.refused(part)]])
            start, size = start + size, min(size * _GROWTH, _LARGEST_PART)
        return found[:most]

    def _forecast(self, row: Codes) -> Forecast | None:
        if self.model is None or self.limit_bytes is None:
            return None
        mean, deviation = (float(value[0]) for value in self.model.headroom(row[None]))
        fits = float(self.model.fits(row[None])[0])
        reach = _NORMAL_975 * math.hypot(deviation, self.noise)
        if not (math.isfinite(fits) and abs(mean) + reach < _FARTHEST):
            return None
        low, peak, high = (
            self.limit_bytes * math.exp(-headroom)
            for headroom in (mean + reach, mean, mean - reach)
        )
        return Forecast(fits, peak, (low, high))

    def _too_large(self, forecast: Forecast) -> str:
        low, high = map(format_bytes, forecast.peak_ci95_bytes)
        sure = f"{forecast.fits:.0%}" if forecast.fits >= 0.01 else "less than 1%"
        assert self.limit_bytes is not None, "a forecast is one against a limit"
        return (
            f"predicted peak memory {format_bytes(forecast.peak_bytes)} (95 % interval {low} to "
            f"{high}) against a limit of {format_bytes(self.limit_bytes)}: it fits with a "
            f"probability of {sure}"
        )


@dataclass
class MemoryGatekeeper:
    """Builds the gate from the trials of a study; the same trials give the same gate.

    seed: decides which refused points are launched to check the gate.
    """

    encoding: Encoding
    knowledge: Knowledge
    seed: int
    _fits: dict[bytes, Fitted] = field(default_factory=dict)
    _gates: dict[bytes, MemoryGate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = self.encoding.space.parameters
        self._reader = HistoryReader(self.encoding)
        self._geometry = Geometry.of(parameters)
        self._slopes = memory_slopes(parameters)

    def gate(self, trials: Iterable[FrozenTrial]) -> MemoryGate:
        """The gate after these trials; those that still run play no part."""
        trials = list(trials)
        history = self._reader.read(trials)
        gate = _latest(self._gates, _key(history), lambda: self._gate(history))
        # Of the trials that run now, one that the gate refuses is a check of it.
        is_checked_now = bool(gate.refused(history.pending).any())
        return replace(gate, since_check=0 if is_checked_now else _since_check(trials))

    def _gate(self, history: History) -> MemoryGate:
        limit = self.knowledge.limit_bytes
        dominance = Dominance.of(self.encoding.space.parameters, history, limit)
        if limit is None or _whole_peaks(history) < _LEAST_PEAKS:
            return MemoryGate(self.encoding, self.seed, limit, dominance)
        fitted = self._fitted(history.first(epoch_start(len(history))))
        model = model_memory(fitted, self._slopes, history, self.knowledge)
        return MemoryGate(self.encoding, self.seed, limit, dominance, model, fitted.noise)

    def _fitted(self, start: History) -> Fitted:
        return _latest(
            self._fits,
            _key(start),
            lambda: fit_memory(self._geometry, self._slopes, start, self.knowledge),
        )


def _since_check(trials: Sequence[FrozenTrial]) -> int:
    """How many trials were launched after the last check of the gate."""
    count = 0
    for trial in sorted(trials, key=lambda trial: trial.number, reverse=True):
        if trial.user_attrs.get(CHECKED_ATTRIBUTE):
            break
        count += was_launched(trial)
    return count


def _whole_peaks(history: History) -> int:
    """How many runs told the peak of a whole run; one that ran out of memory did not get there."""
    whole = history.usable | (history.out_of_memory & np.isfinite(history.seconds))
    return int((whole & np.isfinite(history.peaks)).sum())


def _key(history: History) -> bytes:
    """Equal for histories that say the same of memory."""
    told = (
        history.rows,
        history.peaks,
        history.usable,
        history.out_of_memory,
        np.isfinite(history.seconds),
    )
    return hashlib.sha256(b"/".join(array.tobytes() for array in told)).digest()


def _latest(kept: dict[bytes, Made], key: bytes, make: Callable[[], Made]) -> Made:
    """What is kept under the key, else made; nothing else is kept."""
    if key not in kept:
        made = make()
        kept.clear()
        kept[key] = made
    return kept[key]
