"""Points as Optuna sees them, and back.

An ordered parameter becomes the index of its choice, so that a sampler can use the order:
on power-of-two axes that makes TPE several times better than categories do. Any other
parameter becomes a category labelled with text, since Optuna takes `1` and `True` for the
same category and returns lists for tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from autotune.space.definition import Parameter
from autotune.space.legal import LegalSpace
from autotune.space.point import Point, canonical, plain


@dataclass(frozen=True)
class Encoding:
    """Translates between the points of one space and Optuna's parameters."""

    space: LegalSpace

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distribution of every parameter. They never change within a study."""
        return {p.name: _distribution(p) for p in self.space.parameters}

    @cached_property
    def _values(self) -> list[list[Any]]:
        """Optuna's value of every choice of every parameter."""
        return [
            list(range(len(p.choices))) if p.ordered else _labels(p) for p in self.space.parameters
        ]

    @cached_property
    def _positions(self) -> dict[str, dict[Any, int]]:
        return {
            parameter.name: {value: position for position, value in enumerate(values)}
            for parameter, values in zip(self.space.parameters, self._values, strict=True)
        }

    def encode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Optuna's values of the point's active parameters."""
        return {
            p.name: values[p.index_of(point[p.name])]
            for p, values in zip(self.space.parameters, self._values, strict=True)
            if p.name in point
        }

    def decode(self, params: Mapping[str, Any]) -> Point:
        """The point of a trial's parameters."""
        return self.space.decode(self.row(params))

    def row(self, params: Mapping[str, Any]) -> NDArray[np.int16]:
        """The codes (parameters,) of a trial's parameters, as in `LegalSpace.codes`.

        Raises ValueError for a value that no choice has.
        """
        positions = self._positions
        try:
            return np.array(
                [positions[name][params[name]] if name in params else -1 for name in positions],
                dtype=np.int16,
            )
        except KeyError:
            raise self._stranger(params) from None

    def _stranger(self, params: Mapping[str, Any]) -> ValueError:
        """The error for the first value that no choice has."""
        name, known = next(
            (name, known)
            for name, known in self._positions.items()
            if name in params and params[name] not in known
        )
        allowed = ", ".join(map(str, known))
        return ValueError(f"{name}={params[name]!r} is not in this space, which has {allowed}")

    def row_of(self, point: Mapping[str, Any]) -> NDArray[np.int16]:
        """The codes (parameters,) of a point."""
        return np.array(
            [p.index_of(point[p.name]) if p.name in point else -1 for p in self.space.parameters],
            dtype=np.int16,
        )


def _labels(parameter: Parameter) -> list[str]:
    labels = [plain(choice) for choice in parameter.choices]
    if len(set(labels)) < len(labels):  # such as 1 and "1"
        labels = [canonical(choice) for choice in parameter.choices]
    return labels


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.ordered:
        return IntDistribution(0, len(parameter.choices) - 1)
    return CategoricalDistribution(_labels(parameter))
