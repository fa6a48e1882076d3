"""Samplers that propose legal points which the study has not measured."""

from __future__ import annotations

import hashlib
import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from autotune.search.encoding import Encoding
from autotune.space.point import Point

# Trials with this user attribute have no result, since the sweep ended under them: their
# points are open again, and they do not count as proposals.
INTERRUPTED_ATTRIBUTE = "interrupted"
_DRAWS = 16


class PointSampler(BaseSampler):
    """An Optuna sampler that proposes whole points.

    A proposal depends on the seed and on the trials before it only, interrupted ones left
    out, so a study that is resumed goes on as the unbroken one would.
    """

    def __init__(self, encoding: Encoding, seed: int) -> None:
        self.encoding, self.seed = encoding, seed

    @abstractmethod
    def propose(
        self, study: Study, trial: FrozenTrial, unseen: Sequence[Point], seed: int
    ) -> Point:
        """One of the `unseen` points, of which there is at least one."""

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Every parameter of the space; inactive ones are left out of the sample."""
        return self.encoding.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Optuna's values of the proposed point. Raises SpaceUsedUpError."""
        unseen = self.unseen(study)
        if not unseen:
            raise SpaceUsedUpError
        before = sum(other.number < trial.number for other in _proposals(study))
        point = self.propose(study, trial, unseen, trial_seed(self.seed, before))
        return self.encoding.encode(point)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Never asked for: every active parameter has its value from `sample_relative`."""
        raise ValueError(f"{param_name!r} is inactive at the proposed point")

    def unseen(self, study: Study) -> list[Point]:
        """The legal points that no trial of the study has taken, in the space's order."""
        seen = {self.encoding.decode(trial.params) for trial in _proposals(study) if trial.params}
        return [point for point in self.encoding.space.points if point not in seen]


class SpaceUsedUpError(Exception):
    """Every legal point has been taken."""


def _proposals(study: Study) -> list[FrozenTrial]:
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if not trial.user_attrs.get(INTERRUPTED_ATTRIBUTE)]


def trial_seed(seed: int, trials_before: int) -> int:
    """A seed of 32 bits for one proposal, the same in every process."""
    digest = hashlib.sha256(f"{seed}/{trials_before}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


class ExhaustiveSampler(PointSampler):
    """The points in the order of the space."""

    def propose(
        self, study: Study, trial: FrozenTrial, unseen: Sequence[Point], seed: int
    ) -> Point:
        """The first."""
        return unseen[0]


class RandomPointSampler(PointSampler):
    """Uniform over the unseen points: random search without replacement."""

    def propose(
        self, study: Study, trial: FrozenTrial, unseen: Sequence[Point], seed: int
    ) -> Point:
        """Any."""
        return random.Random(seed).choice(unseen)  # noqa: S311  # a search, no secret


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

    def propose(
        self, study: Study, trial: FrozenTrial, unseen: Sequence[Point], seed: int
    ) -> Point:
        """The point."""
        return self.point


class WrappedSampler(PointSampler):
    """Any Optuna sampler, held to legal and unseen points.

    The inner sampler is drawn from until it proposes one; after `_DRAWS` draws the unseen
    point that shares the most with the last draw is taken. Draws are not told to the study,
    so that its trials are exactly those that were launched.
    """

    def __init__(
        self, encoding: Encoding, seed: int, make_inner: Callable[[int], BaseSampler]
    ) -> None:
        super().__init__(encoding, seed)
        self.make_inner = make_inner

    def propose(
        self, study: Study, trial: FrozenTrial, unseen: Sequence[Point], seed: int
    ) -> Point:
        """The inner sampler's draw where it is legal and unseen, else what is nearest to it."""
        # A new inner sampler for every trial: its random state is then that of the seed alone.
        inner = self.make_inner(seed)
        open_points = set(unseen)
        for _ in range(_DRAWS):
            drawn = self._draw(inner, study, trial)
            point = self.encoding.compose(drawn)
            if point in open_points:
                return point
        return max(unseen, key=lambda candidate: (self._shared(candidate, drawn), candidate.key))

    def _draw(self, inner: BaseSampler, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        space = inner.infer_relative_search_space(study, trial)
        values = dict(inner.sample_relative(study, trial, space)) if space else {}
        for name, distribution in self.encoding.distributions.items():
            if name not in values:
                values[name] = inner.sample_independent(study, trial, name, distribution)
        return values

    def _shared(self, point: Point, drawn: dict[str, Any]) -> int:
        return sum(drawn[name] == value for name, value in self.encoding.encode(point).items())
