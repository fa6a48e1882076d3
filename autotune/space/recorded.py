"""A space whose legal points are the rows of a recorded table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from autotune.errors import UserError
from autotune.space.codes import INACTIVE, Coding, RowIndex
from autotune.space.definition import Parameter
from autotune.space.grouping import group_rows
from autotune.space.point import Point


@dataclass(frozen=True, eq=False)
class Recorded:
    """The rows, none twice. codes: array (rows, parameters), -1 where there is no value."""

    parameters: tuple[Parameter, ...]
    codes: NDArray[np.int16]

    @classmethod
    def of(cls, parameters: Sequence[Parameter], codes: ArrayLike, baseline: Point) -> Recorded:
        """Checks the rows. Raises UserError."""
        rows = np.array(codes, np.int16).reshape(-1, len(parameters))
        rows.flags.writeable = False
        recorded = cls(tuple(parameters), rows)
        coding = Coding(recorded.parameters)
        _, first = group_rows(list(rows.T), len(rows))
        if len(first) < len(rows):
            twice = rows[np.setdiff1d(np.arange(len(rows)), first)[0]]
            raise UserError(
                f"the recorded points name {coding.decode(twice)} twice; name each point once"
            )
        own = coding.encode(baseline)
        if own is None or recorded._finder.rows_of(own[None])[0] < 0:
            raise UserError(
                f"the baseline ({baseline}) is not among the {len(rows)} recorded points; "
                "give one of them"
            )
        return recorded

    def legalized(
        self, codes: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Each row as it is recorded, and whether it is.

        codes: array (n, parameters), 0 or more. A row is recorded too where some parameters are
        recorded without a value and the others agree; rows with more values come first.
        """
        rows = codes.astype(np.int16)
        legal = np.zeros(len(rows), bool)
        for inactive in self._inactive:
            masked = np.where(inactive, np.int16(INACTIVE), codes.astype(np.int16))
            found = ~legal & (self._finder.rows_of(masked) >= 0)
            rows[found] = masked[found]
            legal |= found
        return rows, legal

    @cached_property
    def _finder(self) -> RowIndex:
        return RowIndex(self.codes, [len(p.choices) for p in self.parameters])

    @cached_property
    def _inactive(self) -> NDArray[np.bool_]:
        """The sets of parameters that are without a value in some row, small ones first."""
        absent = self.codes == INACTIVE
        _, first = group_rows(list(absent.T), len(absent))
        patterns: NDArray[np.bool_] = absent[first]
        return patterns.take(np.argsort(patterns.sum(axis=1), kind="stable"), axis=0)
