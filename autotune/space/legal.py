"""The legal points of a space, each once, or a sample of them, and what every rule excludes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from autotune.space.build import build_content, combinations_of
from autotune.space.codes import Coding, Points
from autotune.space.components import Components
from autotune.space.definition import Parameter, SpaceDefinition
from autotune.space.exclusion import Exclusion
from autotune.space.legalize import legalized
from autotune.space.point import Point
from autotune.space.recorded import Recorded
from autotune.space.scope import active_scope, has_active, is_active, is_legal

__all__ = ["Exclusion", "LegalSpace", "active_scope", "is_active"]

# A longer number is told in powers of ten.
_LONGEST_SIZE = 10**15


@dataclass(frozen=True, eq=False)
class LegalSpace:
    """The legal points in a fixed order, with the baseline among them.

    codes: array (points, parameters), int16, read-only: the position of each parameter's
    choice, -1 where it is inactive; columns in the order of `parameters`, rows sorted by them,
    those of a recorded space as given. All legal points where `is_listed`; else a sample
    without repetition that holds the baseline, the same for the same space.
    combinations: distinct combinations before the rules. A parameter whose condition is false
    has no value, so combinations that differ only there are one. An estimate where dozens of
    conditions all matter to each other.
    size: the number of legal points, None where counting them would take too long.
    size_estimate: the same as a float, or an unbiased estimate of it.
    """

    definition: SpaceDefinition
    baseline: Point
    codes: NDArray[np.int16] = field(repr=False)
    combinations: int
    exclusions: tuple[Exclusion, ...]
    is_listed: bool
    size: int | None
    size_estimate: float
    _rules: Components | Recorded = field(repr=False)

    @classmethod
    def build(cls, definition: SpaceDefinition) -> LegalSpace:
        """Works the space out. Raises UserError when it is empty or the baseline is illegal.

        Takes time and memory for the legal points rather than for all combinations, and a
        sample of about 100,000 where there are more than about two million legal points.
        """
        content = build_content(definition)
        return cls(
            definition=definition,
            baseline=content.baseline,
            codes=content.codes,
            combinations=content.combinations,
            exclusions=content.exclusions,
            is_listed=content.is_listed,
            size=content.size,
            size_estimate=content.size_estimate,
            _rules=content.components,
        )

    @classmethod
    def of_codes(cls, definition: SpaceDefinition, codes: ArrayLike, baseline: Point) -> LegalSpace:
        """The space whose legal points are these rows, in this order; no rule is evaluated.

        codes: as the attribute. Raises UserError for a row that is there twice, and where the
        baseline is not among them.
        """
        recorded = Recorded.of(definition.parameters, codes, baseline)
        return cls(
            definition=definition,
            baseline=baseline,
            codes=recorded.codes,
            combinations=combinations_of(definition),
            exclusions=(),
            is_listed=True,
            size=len(recorded.codes),
            size_estimate=float(len(recorded.codes)),
            _rules=recorded,
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, each after those its condition reads."""
        return self.definition.parameters

    @property
    def size_text(self) -> str:
        """The number of legal points for a person: `1,048,576`, or `about 3.1e9`."""
        if self.size is not None and self.size < _LONGEST_SIZE:
            return f"{self.size:,}"
        digits, _, exponent = f"{Decimal(self.size or self.size_estimate):.1e}".partition("e")
        return f"about {digits}e{int(exponent)}"

    @cached_property
    def points(self) -> Points:
        """The points of `codes`, each made when it is asked for."""
        return Points(self._coding, self.codes)

    @cached_property
    def _coding(self) -> Coding:
        return Coding(self.parameters)

    def point(self, row: int) -> Point:
        """The point of a row of `codes`."""
        return self._coding.decode(self.codes[row])

    def decode(self, code_row: ArrayLike) -> Point:
        """The point of a row like those of `codes`, which need not be among them."""
        return self._coding.decode(code_row)

    def encode(self, values: Mapping[str, Any]) -> NDArray[np.int16] | None:
        """The codes of the values, -1 for inactive parameters.

        None where a value is no choice of its parameter, types included (1 is not true), or
        where other parameters have values than those that are active. Rules may be broken.
        """
        row = self._coding.encode(values)
        if row is None or isinstance(self._rules, Recorded):
            return row
        return row if has_active(self.definition, values) else None

    def find(self, values: Mapping[str, Any]) -> Point | None:
        """The legal point with these values, in the space's order of parameters, or None.

        It need not be among the points of a space that is not listed.
        """
        row = self._coding.encode(values)
        if row is None:
            return None
        if self.is_listed:
            legal = self.rows_of(row[None])[0] >= 0
        else:
            legal = is_legal(self.definition, values)
        return self._coding.decode(row) if legal else None

    def index_of(self, values: Mapping[str, Any]) -> int | None:
        """The row of `codes` that has these values, or None."""
        row = self._coding.encode(values)
        found = -1 if row is None else int(self.rows_of(row[None])[0])
        return None if found < 0 else found

    def rows_of(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The row of `codes` that equals each given one, -1 where there is none.

        codes: array (n, parameters), -1 where a parameter is inactive. The result: array (n,).
        """
        return self.points.finder.rows_of(codes)

    def legalize(
        self, codes: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Rows that give every parameter a choice -> rows as in `codes`, and which are legal.

        codes: array (n, parameters), 0 or more everywhere. The results: array (n, parameters)
        with -1 for inactive parameters, and array (n,). Of a recorded space, a row is legal if
        it is recorded, be it without the values of some parameters.
        """
        if isinstance(self._rules, Recorded):
            return self._rules.legalized(codes)
        return legalized(self._rules, codes)
