"""Whether given combinations are legal, for many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.codes import INACTIVE
from autotune.space.components import Components
from autotune.space.diagram import HOLDS

_BLOCK = 1 << 16


def legalized(
    space: Components, codes: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """The rows with -1 where a parameter is inactive, and which of them are legal.

    codes: array (rows, parameters) in the order of the space, a choice everywhere. A row where
    a rule cannot be evaluated is not legal.
    """
    rows = codes.astype(np.int16)
    legal = np.zeros(len(rows), bool)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        legal[block] = _legalize(space, rows[block])
    return rows, legal


def _legalize(space: Components, rows: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Sets inactive parameters to -1 and returns which rows are legal."""
    components = (*space.conditions, *space.rules)
    states = [np.full(len(rows), component.start, np.int32) for component in components]
    places: dict[int, NDArray[np.int64]] = {}
    for layer, axis in enumerate(space.axes):
        if axis.condition is not None:
            rows[states[axis.condition] != HOLDS, axis.column] = INACTIVE
        places[layer] = rows[:, axis.column].astype(np.int64) + axis.offset
        for number, component in enumerate(components):
            if layer in component.tables:
                cell = states[number] * np.int64(axis.places) + places[layer]
                states[number] = component.tables[layer].take(cell)
            elif component.evaluated is not None and component.last == layer:
                states[number] = component.evaluated.verdicts(places)
    legal = np.ones(len(rows), bool)
    for state in states[len(space.conditions) :]:
        legal &= state == HOLDS
    return legal
