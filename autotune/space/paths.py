"""Combinations as paths through merged states: counted, listed and drawn without one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Layer:
    """What may be decided for one parameter: edges from states to the next ones.

    parents, places, children: arrays (edges,), the parents in ascending order. states: the
    number of next states.
    """

    parents: NDArray[np.int32]
    places: NDArray[np.int16]
    children: NDArray[np.int32]
    states: int


def reaching(layers: Sequence[Layer], exact: type) -> NDArray[Any]:
    """The number of paths to each state after the layers; exact: int64 or object."""
    paths: NDArray[Any] = np.ones(1, exact)
    for layer in layers:
        following: NDArray[Any] = np.zeros(layer.states, exact)
        np.add.at(following, layer.children, paths[layer.parents])
        paths = following
    return paths


@dataclass(frozen=True, eq=False)
class Paths:
    """All paths through the layers, each with every tail of the state where it ends.

    tails: array (parameters after the layers, tails) of places, or of whatever else is wanted
    of the ends. origins: array (tails,), the state of each, in any order. exact: int64 or
    object, for the numbers of paths.
    """

    layers: tuple[Layer, ...]
    origins: NDArray[np.int32]
    tails: NDArray[np.integer[Any]]
    exact: type = np.int64

    @property
    def total(self) -> int:
        """The number of combinations."""
        return int(self._counts[0][0])

    @cached_property
    def _counts(self) -> list[NDArray[Any]]:
        """For every layer's states before it, then for the last ones, the paths from there."""
        last = self.layers[-1].states if self.layers else 1
        counts: list[NDArray[Any]] = [np.zeros(last, self.exact)]
        np.add.at(counts[0], self.origins, 1)
        before = [1, *(layer.states for layer in self.layers)]
        for layer, states in zip(reversed(self.layers), before[-2::-1], strict=True):
            here: NDArray[Any] = np.zeros(states, self.exact)
            np.add.at(here, layer.parents, counts[0][layer.children])
            counts.insert(0, here)
        return counts

    @cached_property
    def _sorted_tails(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tails by state, and where each state's begin."""
        order = np.argsort(self.origins, kind="stable")
        states = np.arange(len(self._counts[-1]) + 1)
        return order, np.searchsorted(self.origins[order], states)

    @cached_property
    def _live(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """By layer, the edges that lead to an end, and where those of each state begin."""
        live = []
        for layer, here, following in zip(
            self.layers, self._counts, self._counts[1:], strict=False
        ):
            edges = np.flatnonzero(following[layer.children] > 0)
            begins = np.searchsorted(layer.parents[edges], np.arange(len(here) + 1))
            live.append((edges, begins))
        return live

    def all(self) -> NDArray[np.integer[Any]]:
        """The places of every combination, shape (parameters, combinations)."""
        states = np.zeros(min(self.total, 1), np.int64)
        steps = []
        for layer, (live, begins) in zip(self.layers, self._live, strict=True):
            rows, within = _spread(begins[states], begins[states + 1])
            edges = live[within]
            steps.append((rows, layer.places[edges]))
            states = layer.children[edges].astype(np.int64)
        order, begin_of = self._sorted_tails
        rows, within = _spread(begin_of[states], begin_of[states + 1])
        return self._traced(steps, rows, order[within])

    def draw(self, count: int, random: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The places of combinations drawn at random, each as likely, with repetition."""
        states = np.zeros(count if self.total else 0, np.int64)
        rows = np.arange(len(states))
        steps = []
        for number, layer in enumerate(self.layers):
            live, begins = self._live[number]
            here, following = self._counts[number], self._counts[number + 1]
            share = following[layer.children[live]] / here[layer.parents[live]]
            # Every state has shares of 1 in all, so that of rare states none is rounded away.
            up_to = np.concatenate([[0.0], np.cumsum(share.astype(float))])
            first, last = begins[states], begins[states + 1] - 1
            drawn = up_to[first] + random.random(len(states)) * (up_to[last + 1] - up_to[first])
            found = np.searchsorted(up_to, drawn, "right") - 1
            edges = live[np.clip(found, first, last)]
            steps.append((rows, layer.places[edges]))
            states = layer.children[edges].astype(np.int64)
        order, begin_of = self._sorted_tails
        width = begin_of[states + 1] - begin_of[states]
        within = begin_of[states] + (random.random(len(states)) * width).astype(np.int64)
        return self._traced(steps, rows, order[within])

    def _traced(
        self,
        steps: Sequence[tuple[NDArray[np.int64], NDArray[np.int16]]],
        rows: NDArray[np.int64],
        tails: NDArray[np.int64],
    ) -> NDArray[np.integer[Any]]:
        """The places along the way that led to each row.

        steps: for every layer, the row before it that each row after it goes on from, and
        what was decided. rows, tails: the same for the tails.
        """
        places = np.empty((len(self.layers) + len(self.tails), len(tails)), self.tails.dtype)
        places[len(self.layers) :] = self.tails[:, tails]
        for number, (parents, decided) in reversed(list(enumerate(steps))):
            places[number] = decided[rows]
            rows = parents[rows]
        return places


def _spread(
    begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All numbers of the ranges one after another, and which range each is of."""
    lengths = ends - begins
    ranges = np.repeat(np.arange(len(begins)), lengths)
    offsets = begins - (np.cumsum(lengths) - lengths)
    return ranges, np.arange(len(ranges)) + offsets[ranges]
