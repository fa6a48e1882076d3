"""Deciding the parameters one after another, for many combinations at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.space.components import Axis, Component, Components, as_bits
from autotune.space.diagram import BROKEN, FAILED, HOLDS

# How many cells numpy computes in the time of one in Python.
PYTHONS_EFFORT = 50
# Cells times components that rows may be expanded to at once: about 250 MB.
_MOST_CELLS = 60_000_000


class ConditionFailedError(Exception):
    """The condition of a parameter cannot be evaluated.

    rows: combinations of the parameters before it where that is so.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__("a condition cannot be evaluated")
        self.rows = rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Combinations of the first parameters.

    states: array (components + 1, rows), int32; the last row counts broken rules. origin:
    array (rows,), the state from which each goes on. places: array (layers since then, rows),
    int16, what was decided since then.
    """

    states: NDArray[np.int32]
    origin: NDArray[np.int32]
    places: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.origin)

    @classmethod
    def starting(cls, states: NDArray[np.int32]) -> Rows:
        """Each state as an origin of its own."""
        count = states.shape[1]
        return cls(states, np.arange(count, dtype=np.int32), np.zeros((0, count), np.int16))

    def take(self, rows: NDArray[np.int64] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.states[:, rows], self.origin[rows], self.places[:, rows])

    def without_states(self) -> Rows:
        """The same combinations, for keeping them."""
        return Rows(np.zeros((0, len(self)), np.int32), self.origin, self.places)

    def parts(self, largest: int) -> Iterator[Rows]:
        """The rows in parts of at most that many."""
        for start in range(0, len(self), largest):
            yield self.take(slice(start, start + largest))


class Walk:
    """What may follow a combination of the first parameters, given some of the rules.

    forgiving: also combinations that break one rule are followed, but none that break two.
    """

    def __init__(
        self, components: Components, rules: Sequence[Component], forgiving: bool = False
    ) -> None:
        self.axes, self.forgiving = components.axes, forgiving
        self.conditions, self.rules = components.conditions, tuple(rules)
        self.first_rule = len(self.conditions)
        self.components = (*self.conditions, *self.rules)
        self._readers = [
            [row for row, component in enumerate(self.components) if layer in component.tables]
            for layer in range(len(self.axes))
        ]
        self._used_up = _used_up(self.axes)

    @property
    def mergeable(self) -> int:
        """How many layers come before any parameter of a rule that remembers all it read."""
        read = [min(c.evaluated.layers.values()) for c in self.rules if c.evaluated]
        return min(read, default=len(self.axes))

    def start(self) -> NDArray[np.int32]:
        """The states before the first parameter, shape (components + 1, rows).

        A rule without parameters may leave none.
        """
        states = np.array([component.start for component in self.components] + [0], np.int32)
        states[-1] = np.count_nonzero(states[self.first_rule : -1] == BROKEN)
        legal = states[-1] <= (1 if self.forgiving else 0)
        return np.repeat(states[:, None], int(legal), axis=1)

    def expand(self, layer: int, rows: Rows) -> Rows:
        """Every row with every place of the parameter that is open to it.

        Raises ConditionFailedError.
        """
        axis = self.axes[layer]
        parents, places = np.nonzero(as_bits(self._open(layer, rows), axis.places))
        states = np.empty((len(rows.states), len(parents)), np.int32)
        states[-1] = rows.states[-1].take(parents)
        for row, component in enumerate(self.components):
            before = rows.states[row].take(parents)
            if layer not in component.tables:
                states[row] = before
                continue
            cell = np.multiply(before, axis.places, dtype=np.int64) + places
            states[row] = component.tables[layer].take(cell)
            if self.forgiving and row >= self.first_rule:
                states[-1] += (states[row] == BROKEN) & (before != BROKEN)
        states[self._used_up[layer]] = 0
        decided = np.concatenate([rows.places[:, parents], places[None].astype(np.int16)])
        return self._evaluated(layer, Rows(states, rows.origin[parents], decided))

    def affordable(self, layer: int, rows: int) -> int:
        """As many rows, or fewer where expanding that many took much time or memory."""
        cells = self.axes[layer].places * (len(self.components) + 1)
        return max(1, min(rows, _MOST_CELLS // cells) // self.effort(layer))

    def effort(self, layer: int) -> int:
        """How much longer than usual a cell of the layer takes."""
        closing = [c.evaluated for c in self.rules if c.evaluated and c.last == layer]
        return PYTHONS_EFFORT if any(rule.in_python for rule in closing) else 1

    def broken(self, states: NDArray[np.int32]) -> NDArray[np.int64]:
        """For each row 0, or 1 + the number of the first rule that it breaks."""
        rules = states[self.first_rule : -1] == BROKEN
        if not len(rules):
            return np.zeros(states.shape[1], np.int64)
        return np.where(rules.any(axis=0), 1 + rules.argmax(axis=0), 0)

    def failing(self, states: NDArray[np.int32]) -> NDArray[np.bool_]:
        """The rows of a walk that is not forgiving where a rule cannot be evaluated."""
        failed: NDArray[np.bool_] = (states[self.first_rule : -1] == FAILED).any(axis=0)
        return failed

    def _open(self, layer: int, rows: Rows) -> NDArray[np.uint64]:
        """The open places of each row, as bits, shape (rows, words)."""
        axis, states = self.axes[layer], rows.states
        if axis.condition is None:
            places = np.repeat(axis.active[HOLDS][None], len(rows), axis=0)
        else:
            activity = states[axis.condition]
            if (activity == FAILED).any():
                raise ConditionFailedError(rows.take(np.flatnonzero(activity == FAILED)))
            places = axis.active.take(activity, axis=0)
        once = np.zeros_like(places)
        twice = np.zeros_like(places)
        for row in self._readers[layer]:
            if row < self.first_rule:
                continue
            allowed = self.components[row].allowed[layer].take(states[row], axis=0)
            if self.forgiving:
                twice |= once & ~allowed
                once |= ~allowed
            else:
                places &= allowed
        if self.forgiving:
            places &= ~np.where(states[-1][:, None] > 0, once, twice)
        return places

    def _evaluated(self, layer: int, rows: Rows) -> Rows:
        """The rows that the rules allow which are evaluated after this layer."""
        for row, component in enumerate(self.components):
            if component.evaluated is None or component.last != layer:
                continue
            since = layer + 1 - len(rows.places)
            read = component.evaluated.layers.values()
            verdicts = component.evaluated.verdicts({n: rows.places[n - since] for n in read})
            rows.states[row] = verdicts
            rows.states[-1] += verdicts == BROKEN
            rows = rows.take(np.flatnonzero(rows.states[-1] <= (1 if self.forgiving else 0)))
        return rows


def _used_up(axes: Sequence[Axis]) -> list[list[int]]:
    """By layer, the conditions that no later parameter asks for: they can be forgotten."""
    last = {axis.condition: layer for layer, axis in enumerate(axes) if axis.condition is not None}
    return [[c for c, used in last.items() if used == layer] for layer in range(len(axes))]
