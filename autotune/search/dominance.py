"""Points that need at least as much memory as one that did not fit, by what the user knows.

`memory: increases` at a parameter says that peak memory grows from its first choice to its last.
A point that is no better in any such parameter than one that broke the limit, and equal to it in
all others, breaks it too. What is only guessed from names plays no part here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.search.guided.geometry import Codes
from autotune.search.guided.history import History
from autotune.space.definition import Parameter

# A run that fits with less room than this share of the limit says nothing against a hint: peaks
# of separate runs differ by a few percent.
_ROOM = 0.05
_SIGNS = {"increases": 1, "decreases": -1, None: 0}


@dataclass(frozen=True)
class Dominance:
    """signs: (parameters,), 1 where memory grows with the choices, -1 where it falls, 0 where
    that is not known. violators: rows that broke the limit, by what they must share.
    """  # noqa: D205 (the fields are the summary)

    signs: Codes
    violators: Mapping[bytes, Codes]

    @classmethod
    def of(
        cls, parameters: Sequence[Parameter], history: History, limit_bytes: float | None
    ) -> Dominance:
        """From the runs of a history. A hint that a run has refuted is not believed any more."""
        signs = np.array([_SIGNS[parameter.memory] for parameter in parameters], dtype=np.int16)
        broke = history.rows[history.out_of_memory]
        if not signs.any() or not len(broke):
            return cls(signs, {})
        fits = history.usable & ~(history.peaks > (1 - _ROOM) * (limit_bytes or np.inf))
        believed = _believed(signs, _grouped(signs, broke), history.rows[fits])
        return cls(believed, _grouped(believed, broke) if believed.any() else {})

    def violator(self, row: Codes) -> Codes | None:
        """A row that broke the limit and needs no more memory than this one, or None."""
        found = self.violators.get(_shared(self.signs, row[None])[0].tobytes())
        return None if found is None else _no_more(self.signs, found, row)

    def dominated(self, rows: Codes) -> NDArray[np.bool_]:
        """Which rows, (rows,), have such a violator."""
        if not self.violators:
            return np.zeros(len(rows), dtype=bool)
        keys = [key.tobytes() for key in _shared(self.signs, rows)]
        found = [self.violators.get(key) for key in keys]
        return np.array(
            [
                group is not None and _no_more(self.signs, group, row) is not None
                for group, row in zip(found, rows, strict=True)
            ],
            dtype=bool,
        )


def _shared(signs: Codes, rows: Codes) -> Codes:
    """What two rows must have in common to be compared: choices where memory is not known to
    go one way, and which of the other parameters have a value at all.
    """  # noqa: D205 (one sentence)
    return np.where(signs == 0, rows, rows < 0).astype(np.int16)


def _grouped(signs: Codes, rows: Codes) -> dict[bytes, Codes]:
    groups: dict[bytes, list[Codes]] = {}
    for shared, row in zip(_shared(signs, rows), rows, strict=True):
        groups.setdefault(shared.tobytes(), []).append(row)
    return {key: np.array(group) for key, group in groups.items()}


def _no_more(signs: Codes, group: Codes, row: Codes) -> Codes | None:
    """The first row of the group that needs no more memory than `row`, as the signs have it."""
    less = (signs * (row - group) >= 0).all(axis=1)
    return group[int(np.argmax(less))] if less.any() else None


def _believed(signs: Codes, violators: Mapping[bytes, Codes], fitting: Codes) -> Codes:
    """The signs without those that a fitting row contradicts.

    Where a row fits that should need more than a violator, one of the parameters in which they
    differ does not do what is said of it.
    """
    believed = signs.copy()
    for shared, row in zip(_shared(signs, fitting), fitting, strict=True):
        group = violators.get(shared.tobytes())
        if group is None:
            continue
        more = signs * (row - group)
        contradicting = (more >= 0).all(axis=1)
        believed[(more[contradicting] > 0).any(axis=0)] = 0
    return believed
