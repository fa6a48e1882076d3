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

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from autotune.space.definition import Parameter
from autotune.space.legal import LegalSpace, active_scope, is_active
from autotune.space.point import Point, canonical, plain


@dataclass(frozen=True)
class Encoding:
    """Translates between the points of one space and Optuna's parameters."""

    space: LegalSpace

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distribution of every parameter. They never change within a study."""
        return {p.name: _distribution(p) for p in self.space.parameters}

    def encode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Optuna's values of the point's active parameters."""
        return {p.name: _encode(p, point[p.name]) for p in self.space.parameters if p.name in point}

    def decode(self, params: Mapping[str, Any]) -> Point:
        """The point of a trial's parameters."""
        return Point(
            {p.name: _decode(p, params[p.name]) for p in self.space.parameters if p.name in params}
        )

    def compose(self, drawn: Mapping[str, Any]) -> Point:
        """The point from Optuna's values of all parameters: those that are inactive are dropped."""
        scope = active_scope(self.space.definition, {})
        values: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if is_active(parameter, scope):
                value = _decode(parameter, drawn[parameter.name])
                scope[parameter.name] = values[parameter.name] = value
        return Point(values)


def _labels(parameter: Parameter) -> list[str]:
    labels = [plain(choice) for choice in parameter.choices]
    if len(set(labels)) < len(labels):  # such as 1 and "1"
        labels = [canonical(choice) for choice in parameter.choices]
    return labels


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.ordered:
        return IntDistribution(0, len(parameter.choices) - 1)
    return CategoricalDistribution(_labels(parameter))


def _encode(parameter: Parameter, value: Any) -> Any:
    index = parameter.index_of(value)
    return index if parameter.ordered else _labels(parameter)[index]


def _decode(parameter: Parameter, value: Any) -> Any:
    index = int(value) if parameter.ordered else _labels(parameter).index(value)
    return parameter.choices[index]
