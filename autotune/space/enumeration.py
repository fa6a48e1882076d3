"""All combinations that a walk allows: counted or listed, within bounds of memory and time.

Combinations that leave the same states are merged while that is little work. From there on
each state's continuations are followed in blocks, depth first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.diagram import TooMuchWorkError, Work
from autotune.space.grouping import merge_rows
from autotune.space.paths import Layer, Paths, reaching
from autotune.space.walk import ConditionFailedError, Rows, Walk

# Cells (a state and a choice) times components that one merged layer may have: about 200 MB.
_MERGED = 30_000_000
_BLOCK_CELLS = 1 << 18
_LARGEST_INT64 = 1 << 62
_MOST_TAILS = 4_000_000
_PROBE = 1000
_PROBE_SEED = 1975


class EvaluationFailedError(Exception):
    """A rule cannot be evaluated where no other one excludes the combination, or a condition.

    paths: such combinations; of the first parameters only, where it is a condition.
    """

    def __init__(self, paths: Paths) -> None:
        super().__init__("an expression cannot be evaluated")
        self.paths = paths


@dataclass(frozen=True, eq=False)
class Head:
    """The merged layers of a walk. states: of the combinations after them, as `Rows.states`."""

    layers: tuple[Layer, ...]
    states: NDArray[np.int32]
    exact: type

    @classmethod
    def of(cls, walk: Walk) -> Head:
        """Merges as many layers as stay small."""
        layers: list[Layer] = []
        states = walk.start()
        for number in range(walk.mergeable):
            if states.size * walk.axes[number].places > _MERGED:
                break
            try:
                rows = walk.expand(number, Rows.starting(states))
            except ConditionFailedError:
                break  # whoever follows the continuations meets it again, and has the rows
            groups, first = merge_rows(list(rows.states), len(rows))
            layers.append(Layer(rows.origin, rows.places[0], groups, len(first)))
            states = rows.states[:, first]
        fits = np.prod([float(axis.places) for axis in walk.axes]) < _LARGEST_INT64
        return cls(tuple(layers), states, np.int64 if fits else object)

    def paths(self, rows: Rows) -> Paths:
        """The combinations that go on with these rows."""
        return Paths(self.layers, rows.origin, rows.places, self.exact)


@dataclass(frozen=True, eq=False)
class Found:
    """What a walk allows. paths: None where their number is known but they were too many."""

    total: int
    paths: Paths | None


def find_all(walk: Walk, work: Work) -> Found:
    """All combinations that the walk allows.

    Raises TooMuchWorkError and EvaluationFailedError.
    """
    head = Head.of(walk)
    reached = reaching(head.layers, head.exact)
    total, tails = 0, 0
    kept: list[Rows] = []
    for rows in completions(walk, head, work):
        failing = walk.failing(rows.states)
        if failing.any():
            raise EvaluationFailedError(head.paths(rows.take(np.flatnonzero(failing))))
        total += int(reached[rows.origin].sum())
        tails += len(rows)
        if tails <= _MOST_TAILS:
            kept.append(rows.without_states())
    if tails > _MOST_TAILS:
        return Found(total, None)
    return Found(total, head.paths(_joined(kept, len(walk.axes) - len(head.layers))))


def tally(walk: Walk, work: Work) -> list[int]:
    """The number of allowed combinations that break no rule, and that break each one alone.

    Raises TooMuchWorkError, and EvaluationFailedError for a condition.
    """
    head = Head.of(walk)
    reached = reaching(head.layers, head.exact)
    totals: NDArray[Any] = np.zeros(1 + len(walk.rules), head.exact)
    for rows in completions(walk, head, work):
        np.add.at(totals, walk.broken(rows.states), reached[rows.origin])
    return [int(total) for total in totals]


def completions(walk: Walk, head: Head, work: Work) -> Iterator[Rows]:
    """Every allowed continuation of the head's states, in blocks.

    Raises TooMuchWorkError, and EvaluationFailedError for a condition.
    """
    try:
        _probe(walk, head, work)
        yield from _completions(walk, head, work)
    except ConditionFailedError as error:
        raise EvaluationFailedError(head.paths(error.rows)) from None


def _completions(walk: Walk, head: Head, work: Work) -> Iterator[Rows]:
    blocks = [max(1, _BLOCK_CELLS // axis.places) for axis in walk.axes] + [_BLOCK_CELLS]
    first = len(head.layers)
    stack = [(first, part) for part in Rows.starting(head.states).parts(blocks[first])]
    while stack:
        layer, rows = stack.pop()
        if layer == len(walk.axes):
            yield rows
            continue
        work.spend(len(rows) * walk.axes[layer].places * walk.effort(layer))
        parts = walk.expand(layer, rows).parts(blocks[layer + 1])
        stack.extend((layer + 1, part) for part in parts)


def thinned(rows: Rows, count: int, random: np.random.Generator) -> tuple[Rows, float]:
    """At most `count` of the rows, each as likely, and how many each then stands for."""
    if len(rows) <= count:
        return rows, 1.0
    chosen = np.sort(random.permutation(len(rows))[:count])
    return rows.take(chosen), len(rows) / count


def _probe(walk: Walk, head: Head, work: Work) -> None:
    """Raises TooMuchWorkError where all continuations are likely far more than the work.

    Follows a random part of the rows at every layer and multiplies up what it finds.
    Source: Knuth 1975, "Estimating the efficiency of backtrack programs",
    doi:10.1090/S0025-5718-1975-0373371-6.
    """
    random = np.random.default_rng(_PROBE_SEED)
    rows, factor, expected = Rows.starting(head.states), 1.0, 0.0
    for layer in range(len(head.layers), len(walk.axes)):
        rows, kept = thinned(rows, walk.affordable(layer, _PROBE), random)
        factor *= kept
        expected += factor * len(rows) * walk.axes[layer].places * walk.effort(layer)
        rows = walk.expand(layer, rows)
    if expected > 2 * work.cells:
        raise TooMuchWorkError


def _joined(blocks: list[Rows], layers: int) -> Rows:
    empty = Rows(np.zeros((0, 0), np.int32), np.zeros(0, np.int32), np.zeros((layers, 0), np.int16))
    blocks = [empty, *blocks]
    return Rows(
        empty.states,
        np.concatenate([rows.origin for rows in blocks]),
        np.concatenate([rows.places for rows in blocks], axis=1),
    )
