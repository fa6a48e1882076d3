"""The guided sampler: proposes where an improvement is most to be expected.

Bayesian optimisation over the legal points: a Gaussian process of the logarithm of the time,
one of the headroom in memory, and expected improvement times the probability of running
(Gardner et al., Bayesian Optimization with Inequality Constraints, 2014).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from autotune.search.encoding import Encoding
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.blas import one_thread
from autotune.search.guided.epochs import epoch_start
from autotune.search.guided.fit import Fitted
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History, HistoryReader
from autotune.search.guided.improvement import log_expected_improvement
from autotune.search.guided.memory_model import fit_memory
from autotune.search.guided.pool import SMALL, broad_pool
from autotune.search.guided.risk import Risk
from autotune.search.guided.time_model import TimeModel, fit_time, model_time
from autotune.search.guided.usable import model_usable
from autotune.search.guided.vocabulary import memory_slopes
from autotune.search.point_sampler import Gate, PointSampler
from autotune.space.point import Point

_POOL = 700
_POOL_RANDOM = 100
_LEAST_PROBABILITY = 1e-12
# Ties are broken by chance; differences below this are ties.
_TIE = 1e-9


@dataclass(frozen=True)
class _Epoch:
    """What is worked out anew only now and then. pool: candidate rows."""

    time: Fitted
    memory: Fitted
    pool: Codes


class GuidedSampler(PointSampler):
    """Proposes legal points that were not tried, by models of time and memory.

    A proposal depends on the seed and on the trials so far only, not on the order in which
    they ended nor on what this object was asked before.
    """

    avoids_refused = True

    def __init__(
        self,
        encoding: Encoding,
        seed: int,
        knowledge: Knowledge | None = None,
        risk: Risk | None = None,
    ) -> None:
        super().__init__(encoding, seed)
        self.knowledge = knowledge or Knowledge()
        self._geometry = Geometry.of(encoding.space.parameters)
        self._slopes = memory_slopes(encoding.space.parameters)
        self.risk = risk or Risk.of(self._slopes)
        self._reader = HistoryReader(encoding)
        self._epochs: dict[str, _Epoch] = {}

    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """The untried point with the largest expected improvement that is likely to run."""
        with one_thread():
            return self._proposed(study, trial, seed)

    def _proposed(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        self.passed_over = None
        others = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
        history = self._reader.read(others, self.steady_s, self.reserved(study))
        generator = np.random.default_rng(seed)
        if not len(history):
            return self.random_untried(study, seed)
        epoch = self._epoch(history)
        pool = self._untried(epoch.pool, study)
        if not len(pool):
            pool = self._untried(self._widest(generator), study)
        gate = None if self.gatekeeper is None else self.gatekeeper.gate(others)
        if not len(pool):
            return self._any(gate, study, seed)
        improvement = self._improvement(epoch, history, pool)
        worth = self._worth(epoch, history, pool, improvement)
        if gate is not None:
            refused = gate.refused(pool)
            if improvement is not None:  # else nothing is known to promise more
                tempting = int(np.argmax(improvement))
                if refused[tempting] and gate.check_is_due:
                    return self.encoding.space.decode(pool[tempting])
                held_back = _held_back(worth, refused)
                if held_back is not None:
                    self.passed_over = self.encoding.space.decode(pool[held_back])
            pool, worth = pool[~refused], worth[~refused]
        if not len(pool):
            return self._any(gate, study, seed)
        return self.encoding.space.decode(pool[_largest(worth, generator)])

    def _any(self, gate: Gate | None, study: Study, seed: int) -> Point:
        """Any untried point of the whole space, one that the gate admits if there is one."""
        space = self.encoding.space
        if gate is not None:
            admitted = gate.some_admitted(space.codes[self.untaken(study)], seed)
            if len(admitted):
                return space.decode(admitted[0])
        return self.random_untried(study, seed)

    def _improvement(self, epoch: _Epoch, history: History, rows: Codes) -> Floats | None:
        """Logarithm of the expected improvement of rows that run; None before one has run."""
        model = model_time(epoch.time, history, self.knowledge)
        if model is None or not (history.usable & np.isfinite(history.seconds)).any():
            return None
        mean, deviation = model.predict(rows)
        return log_expected_improvement(mean, deviation, _incumbent(model, history))

    def _worth(
        self, epoch: _Epoch, history: History, rows: Codes, improvement: Floats | None
    ) -> Floats:
        """Logarithm of the expected improvement that a run of each row brings."""
        usable = model_usable(epoch.memory, self._slopes, history, self.knowledge)
        runs = usable.runs(rows)
        certain = np.log(np.maximum(runs, _LEAST_PROBABILITY))
        if improvement is None:
            return certain  # whatever runs at all is what matters first
        failures = int((~history.usable).sum())
        allowed = self.risk.allowed(len(history), failures, runs)
        weighed = improvement + self.risk.weight(failures) * certain
        return np.asarray(np.where(allowed, weighed, -np.inf))

    def _epoch(self, history: History) -> _Epoch:
        """The epoch that the history has reached, from its first runs alone."""
        start = history.first(epoch_start(len(history)))
        told = (start.rows, start.seconds, start.peaks, start.usable, start.out_of_memory)
        key = hashlib.sha256(b"/".join(array.tobytes() for array in told)).hexdigest()
        if key not in self._epochs:
            self._epochs.clear()
            time = fit_time(self._geometry, start, self.knowledge)
            memory = fit_memory(self._geometry, self._slopes, start, self.knowledge)
            self._epochs[key] = _Epoch(time, memory, self._pool(start, time, memory))
        return self._epochs[key]

    def _pool(self, history: History, time: Fitted, memory: Fitted) -> Codes:
        generator = np.random.default_rng([self.seed, len(history)])
        best = _fastest(history)
        broad = broad_pool(self.encoding.space, best, generator)
        if len(broad) <= SMALL // 2:
            return broad
        epoch = _Epoch(time, memory, broad)
        improvement = self._improvement(epoch, history, broad)
        worth = self._worth(epoch, history, broad, improvement)
        tried = {row.tobytes() for row in history.rows}
        open_ = np.array([row.tobytes() not in tried for row in broad])
        order = np.argsort(np.where(open_, -worth, np.inf), kind="stable")
        some = generator.integers(len(broad), size=_POOL_RANDOM)
        return np.asarray(broad[np.unique(np.concatenate([order[:_POOL], some]))])

    def _widest(self, generator: np.random.Generator) -> Codes:
        codes = self.encoding.space.codes
        if len(codes) <= SMALL:
            return codes
        return codes[generator.integers(len(codes), size=SMALL)]

    def _untried(self, rows: Codes, study: Study) -> Codes:
        taken = self.taken(study)
        return rows[[row.tobytes() not in taken for row in rows]]


def _incumbent(model: TimeModel, history: History) -> float:
    """Logarithm of the seconds of the best usable point, noise taken out."""
    usable = history.usable & np.isfinite(history.seconds)
    fastest = np.flatnonzero(usable)[np.argsort(history.seconds[usable], kind="stable")[:10]]
    mean, _ = model.predict(history.rows[fastest])
    return float(mean.min())


def _fastest(history: History) -> Codes:
    usable = np.flatnonzero(history.usable & np.isfinite(history.seconds))
    return np.asarray(history.rows[usable[np.argsort(history.seconds[usable], kind="stable")]])


def _held_back(worth: Floats, refused: np.ndarray) -> int | None:
    """The refused candidate that would be launched were nothing refused, None where none would.

    Most that are refused are not among them: the worth of a candidate knows of memory too.
    """
    best = int(np.argmax(np.where(refused, worth, -np.inf)))
    admitted = float(worth[~refused].max(initial=-np.inf))
    return best if refused[best] and worth[best] > admitted + _TIE else None


def _largest(worth: Floats, generator: np.random.Generator) -> int:
    best = worth.max()
    if not np.isfinite(best):
        return int(generator.integers(len(worth)))
    return int(generator.choice(np.flatnonzero(worth >= best - _TIE)))
