"""The points that are looked at closely, in spaces where looking at all would take too long."""

from __future__ import annotations

import numpy as np

from autotune.search.guided.geometry import Codes
from autotune.space.legal import LegalSpace

# All points of a space up to this size are candidates.
SMALL = 3000
_BROAD = 3000
_NEAR = 8
_MUTANTS = 400


def broad_pool(space: LegalSpace, best: Codes, generator: np.random.Generator) -> Codes:
    """Legal rows, each once: all of a small space; else any, and what is near the best ones.

    best: (points, parameters), the fastest first.
    """
    if space.is_listed and len(space.codes) <= SMALL:
        return space.codes
    drawn = space.codes[generator.integers(len(space.codes), size=_BROAD)]
    parts = [drawn]
    if len(best):
        parts += [_neighbours(space, row, generator) for row in best[:_NEAR]]
        parts.append(_mutants(space, best[:_NEAR], generator))
    return np.unique(np.vstack(parts), axis=0)


def _neighbours(space: LegalSpace, row: Codes, generator: np.random.Generator) -> Codes:
    """Legal rows that differ in one parameter, and in what its choice switches on."""
    made = []
    for number, parameter in enumerate(space.parameters):
        for choice in range(len(parameter.choices)):
            if choice != row[number]:
                changed = row.copy()
                changed[number] = choice
                made.append(changed)
    return _legal(space, np.array(made, dtype=np.int16).reshape(-1, len(row)), generator)


def _mutants(space: LegalSpace, best: Codes, generator: np.random.Generator) -> Codes:
    """Legal rows that differ in two or three parameters."""
    rows = best[generator.integers(len(best), size=_MUTANTS)].copy()
    choices = _choices(space)
    for _ in range(3):
        number = generator.integers(rows.shape[1], size=len(rows))
        drawn = (generator.random(len(rows)) * choices[number]).astype(np.int16)
        rows[np.arange(len(rows)), number] = drawn
    return _legal(space, rows, generator)


def _legal(space: LegalSpace, rows: Codes, generator: np.random.Generator) -> Codes:
    # A parameter that becomes active needs a value; legalize drops those that stay inactive.
    drawn = (generator.random(rows.shape) * _choices(space)).astype(np.int16)
    legal, mask = space.legalize(np.where(rows < 0, drawn, rows).astype(np.int16))
    return np.asarray(legal[mask], dtype=np.int16)


def _choices(space: LegalSpace) -> np.ndarray:
    return np.array([len(parameter.choices) for parameter in space.parameters])
