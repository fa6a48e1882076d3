"""Some of the combinations that a walk allows, where they are too many to list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.codes import RowIndex, in_order
from autotune.space.components import Components
from autotune.space.enumeration import EvaluationFailedError, Head, thinned
from autotune.space.grouping import group_rows
from autotune.space.legalize import legalized
from autotune.space.paths import Paths
from autotune.space.walk import ConditionFailedError, Rows, Walk

# The same space gives the same sample, in every process.
_SEED = 2016
_BEAM = 200_000
_WIDER = 4
_ATTEMPTS = 2
# A sample smaller than this is tried again with a wider beam, then filled up with neighbours.
FEW = 1_000
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Sample:
    """places: array (parameters, combinations), none twice. estimate: of how many there are."""

    places: NDArray[np.integer[Any]]
    estimate: float


def draw(paths: Paths, count: int) -> NDArray[np.integer[Any]]:
    """`count` distinct combinations or a few less, each set of them as likely.

    Shape (parameters, combinations).
    """
    random = np.random.default_rng(_SEED)
    return _distinct(paths.draw(count + count // 4, random), count, random)


def sample(walk: Walk, count: int) -> Sample:
    """Up to `count` combinations by stochastic enumeration, and an unbiased estimate of all.

    At every parameter a random part of the combinations so far goes on. Each legal one is about
    as likely to come out, but those that share their first choices come out together. None may
    come out where nearly all of what goes on turns out to be illegal. Raises
    EvaluationFailedError.
    Source: Rubinstein, Ridder, Vaisman 2014, "Fast Sequential Monte Carlo Methods for Counting
    and Optimization", chapter 6; Vaisman and Kroese 2017, "Stochastic enumeration method for
    counting trees", doi:10.1007/s11009-015-9457-4.
    """
    head = Head.of(walk)
    found = Sample(np.zeros((len(walk.axes), 0), np.int16), 0.0)
    for attempt in range(_ATTEMPTS):
        random = np.random.default_rng(_SEED + attempt)
        found = _beam(walk, head, _BEAM * _WIDER**attempt, random)
        if found.places.shape[1] >= min(count, FEW):
            break
    return Sample(_distinct(found.places, count, random), found.estimate)


def _beam(walk: Walk, head: Head, width: int, random: np.random.Generator) -> Sample:
    rows, factor = _after_head(head, width, random)
    for layer in range(len(head.layers), len(walk.axes)):
        rows, kept = thinned(rows, walk.affordable(layer, width), random)
        factor *= kept
        try:
            rows = walk.expand(layer, rows)
        except ConditionFailedError as error:
            raise _failed(error.rows) from None
    failing = walk.failing(rows.states)
    if failing.any():
        raise _failed(rows.take(np.flatnonzero(failing)))
    return Sample(rows.places, factor * len(rows))


def _failed(rows: Rows) -> EvaluationFailedError:
    return EvaluationFailedError(Paths((), np.zeros(len(rows), np.int32), rows.places))


def _after_head(head: Head, width: int, random: np.random.Generator) -> tuple[Rows, float]:
    """Combinations of the merged parameters, and how many each stands for."""
    numbers = np.arange(head.states.shape[1], dtype=np.int32)
    paths = Paths(head.layers, numbers, numbers[None], head.exact)
    ends = paths.all() if paths.total <= width else paths.draw(width, random)
    count = ends.shape[1]
    rows = Rows(head.states[:, ends[-1]], np.zeros(count, np.int32), ends[:-1].astype(np.int16))
    return rows, paths.total / count if count else 0.0


def _distinct(
    places: NDArray[np.integer[Any]], count: int, random: np.random.Generator
) -> NDArray[np.integer[Any]]:
    """The columns without repetition, and if there are more than `count`, any `count` of them."""
    _, first = group_rows(list(places), places.shape[1])
    if len(first) > count:
        first = random.permutation(first)[:count]
    return places[:, first]


def neighbours(space: Components, codes: NDArray[np.int16], count: int) -> NDArray[np.int16]:
    """The legal rows with more legal ones that differ in one choice, and so on up to `count`.

    codes: array (rows, parameters) of legal rows, -1 where a parameter is inactive.
    """
    choices = [len(axis.parameter.choices) for axis in sorted(space.axes, key=lambda a: a.column)]
    changes = [(n, code) for n, options in enumerate(choices) for code in range(options)]
    random = np.random.default_rng(_SEED)
    known, edge = codes, codes
    for _ in range(_ROUNDS):
        if not len(edge) or len(known) >= count:
            break
        edge = random.permutation(edge)[: max(1, count // len(changes))]
        changed = np.repeat(np.maximum(edge, 0), len(changes), axis=0)
        for number, (column, code) in enumerate(changes):
            changed[number :: len(changes), column] = code
        rows, legal = legalized(space, changed)
        found = in_order(rows[legal])
        edge = random.permutation(found[RowIndex(known, choices).rows_of(found) < 0])
        known = np.concatenate([known, edge])
    return known[: max(count, len(codes))]
