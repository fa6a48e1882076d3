"""Samplers that propose legal points which the study has not measured."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from autotune.measure.outcome import Status
from autotune.search.encoding import Encoding
from autotune.search.per_trial import PerTrial
from autotune.search.reservations import Reservations
from autotune.space.point import Point

# Trials with this user attribute have no result, since the sweep ended under them: their
# points are open again, and they do not count as proposals.
INTERRUPTED_ATTRIBUTE = "interrupted"
# True where a trial was refused by the memory gate and launched to check the gate.
CHECKED_ATTRIBUTE = "checked"
_SKIPPED = Status.SKIPPED.value
_DRAWS = 16


class Gate(Protocol):
    """What keeps points from being launched, at one moment (`autotune.search.gate`)."""

    def refused(self, rows: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Which of the rows, as in `LegalSpace.codes`, are not to be launched."""
        ...

    @property
    def check_is_due(self) -> bool:
        """Whether a refused point should be launched, to see whether the gate is right."""
        ...

    def some_admitted(self, rows: NDArray[np.int16], seed: int, most: int = 1) -> NDArray[np.int16]:
        """Rows that are not refused, at most so many; none only if there are none."""
        ...


class Gatekeeper(Protocol):
    """Builds the gate from a study."""

    def gate(self, trials: Iterable[FrozenTrial]) -> Gate:
        """The gate after these trials."""
        ...


class PointSampler(BaseSampler):
    """An Optuna sampler that proposes whole points.

    A proposal depends on the seed and on the trials before it only, interrupted ones left
    out, so a study that is resumed goes on as the unbroken one would.

    steady_s: seconds of points that ran more than once, by the bytes of their codes, for
    samplers that can use them: Optuna's trials keep what the first run took.

    gatekeeper: of the memory gate, None without one. avoids_refused: the sampler looks at the
    gate itself; what the gate refused stays open to it, for the gate may change its mind. Any
    other sampler has taken a point that it proposed. passed_over: the point that the last
    proposal stands in for, as it would have been proposed but for the gate; None mostly.

    Several threads may ask for proposals, as in `study.optimize(n_jobs=4)`.
    """

    avoids_refused = False

    def __init__(self, encoding: Encoding, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"seed={seed} must be at least 0")
        self.encoding, self.seed = encoding, seed
        self.steady_s: Mapping[bytes, float] = {}
        self.gatekeeper: Gatekeeper | None = None
        self.passed_over: Point | None = None
        self._reserved = Reservations()
        self._rows = PerTrial(self._row)

    @abstractmethod
    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """A legal point that is not taken; there is at least one."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Raises ValueError for a study that looks for anything but the least time."""
        if study.directions != [StudyDirection.MINIMIZE]:
            found = " and ".join(direction.name.lower() for direction in study.directions)
            raise ValueError(
                f"the study's direction is {found}, and {type(self).__name__} looks for the least "
                "time; make the study with optuna.create_study(direction='minimize')"
            )

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Every parameter of the space; inactive ones are left out of the sample."""
        return self.encoding.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Optuna's values of the proposed point. Raises SpaceUsedUpError."""
        space = self.encoding.space
        with self._reserved.lock:
            if space.is_listed and len(self.taken(study)) >= len(space.codes):
                raise SpaceUsedUpError(
                    f"all {len(space.codes)} legal points of the space have been proposed"
                )
            before = sum(other.number < trial.number for other in self._own(study))
            point = self.propose(study, trial, trial_seed(self.seed, before))
            self._reserved.keep(study, trial.number, self.encoding.row_of(point).tobytes())
        return self.encoding.encode(point)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Never asked for: every active parameter has its value from `sample_relative`."""
        raise ValueError(f"{param_name!r} is inactive at the proposed point")

    def taken(self, study: Study) -> set[bytes]:
        """The points that trials of the study have taken, as the bytes of their codes.

        Without a gate those that one refused earlier are open.
        """
        trials = self._own(study)
        if self.gatekeeper is None:
            trials = [trial for trial in trials if not _is_skipped(trial)]
        reserved = self._reserved.of(study, trials)
        shown = (t for t in trials if t.params and t.number not in reserved)
        return {*reserved.values(), *map(self._rows.of, shown)}

    def reserved(self, study: Study) -> dict[int, bytes]:
        """What was proposed for trials that run, as the bytes of the codes, by their numbers."""
        return self._reserved.of(study, study.get_trials(deepcopy=False))

    def _own(self, study: Study) -> list[FrozenTrial]:
        """The trials that this sampler has proposed, as it counts them."""
        trials = _proposals(study)
        if self.avoids_refused:
            return [trial for trial in trials if not _is_skipped(trial)]
        return trials

    def _row(self, trial: FrozenTrial) -> bytes:
        return self.encoding.row(trial.params).tobytes()

    def untaken(self, study: Study) -> np.ndarray:
        """The rows of the space's codes that no trial has taken, in their order."""
        codes = self.encoding.space.codes
        is_open = np.ones(len(codes), dtype=bool)
        taken = [np.frombuffer(row, dtype=np.int16) for row in self.taken(study)]
        if taken:
            rows = self.encoding.space.rows_of(np.array(taken))
            is_open[rows[rows >= 0]] = False
        return np.flatnonzero(is_open)

    def random_untried(self, study: Study, seed: int) -> Point:
        """Any point that is not taken, each as likely as the other."""
        rows = self.untaken(study)
        return self.encoding.space.point(int(np.random.default_rng(seed).choice(rows)))


class SpaceUsedUpError(Exception):
    """Every legal point has been proposed."""


def _proposals(study: Study) -> list[FrozenTrial]:
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if not trial.user_attrs.get(INTERRUPTED_ATTRIBUTE)]


def was_launched(trial: FrozenTrial) -> bool:
    """Whether a run of the trial's point was started, and not cut off by the sweep's end."""
    interrupted = bool(trial.user_attrs.get(INTERRUPTED_ATTRIBUTE))
    return bool(trial.params) and not interrupted and not _is_skipped(trial)


def _is_skipped(trial: FrozenTrial) -> bool:
    return bool(trial.user_attrs.get("status") == _SKIPPED)


def trial_seed(seed: int, trials_before: int) -> int:
    """A seed of 32 bits for one proposal, the same in every process."""
    digest = hashlib.sha256(f"{seed}/{trials_before}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


class ExhaustiveSampler(PointSampler):
    """The points in the order of the space."""

    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """The first."""
        return self.encoding.space.point(int(self.untaken(study)[0]))


class RandomPointSampler(PointSampler):
    """Uniform over the untried points: random search without replacement."""

    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """Any."""
        return self.random_untried(study, seed)


class FixedPointSampler(PointSampler):
    """Proposes one given point: the baseline, a retry."""

    def __init__(self, encoding: Encoding, point: Point) -> None:
        super().__init__(encoding, seed=0)
        self.point = point

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Optuna's values of the point."""
        return self.encoding.encode(self.point)

    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """The point."""
        return self.point


class WrappedSampler(PointSampler):
    """Any Optuna sampler, held to legal and untried points.

    The inner sampler is drawn from until it proposes one; after `_DRAWS` draws the untried
    point that shares the most with the last draw is taken. Draws are not told to the study,
    so that its trials are exactly those that were launched.
    """

    def __init__(
        self, encoding: Encoding, seed: int, make_inner: Callable[[int], BaseSampler]
    ) -> None:
        super().__init__(encoding, seed)
        self.make_inner = make_inner

    def propose(self, study: Study, trial: FrozenTrial, seed: int) -> Point:
        """The inner sampler's draw where it is legal and untried, else what is nearest to it."""
        # A new inner sampler for every trial: its random state is then that of the seed alone.
        inner = self.make_inner(seed)
        space, taken = self.encoding.space, self.taken(study)
        for _ in range(_DRAWS):
            drawn = self.encoding.row(self._draw(inner, study, trial))
            rows, is_legal = space.legalize(drawn[None])
            if is_legal[0] and rows[0].tobytes() not in taken:
                return space.decode(rows[0])
        untaken = self.untaken(study)
        shared = (space.codes[untaken] == drawn).sum(axis=1)
        return space.point(int(untaken[np.argmax(shared)]))

    def _draw(self, inner: BaseSampler, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        space = inner.infer_relative_search_space(study, trial)
        values = dict(inner.sample_relative(study, trial, space)) if space else {}
        for name, distribution in self.encoding.distributions.items():
            if name not in values:
                values[name] = inner.sample_independent(study, trial, name, distribution)
        return values
