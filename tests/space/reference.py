"""The meaning of a space file, by plain recursion over all combinations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import UserError
from autotune.space.definition import SpaceDefinition
from autotune.space.expression import InapplicableError


@dataclass
class Counted:
    """What there is; `excluded` and `alone` by rule."""

    points: list[dict[str, Any]] = field(default_factory=list)
    combinations: int = 0
    excluded: list[int] = field(default_factory=list)
    alone: list[int] = field(default_factory=list)


def count(definition: SpaceDefinition) -> Counted:
    """Raises UserError where an expression cannot be evaluated that decides something."""
    counted = Counted(excluded=[0] * len(definition.rules), alone=[0] * len(definition.rules))
    for values, scope in combinations(definition):
        counted.combinations += 1
        broken = []
        failure: UserError | None = None
        for number, rule in enumerate(definition.rules):
            try:
                if not rule.expression.holds(scope):
                    broken.append(number)
            except UserError as error:
                failure = failure or error
        if failure and not broken:
            raise failure
        for number in broken:
            counted.excluded[number] += 1
        if len(broken) == 1:
            counted.alone[broken[0]] += 1
        if not broken:
            counted.points.append(dict(values))
    return counted


def combinations(
    definition: SpaceDefinition,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every distinct combination: its active values, and what rules read."""
    parameters = definition.parameters
    scope: dict[str, Any] = {**definition.facts, **{p.name: None for p in parameters}}
    values: dict[str, Any] = {}

    def descend(depth: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        if depth == len(parameters):
            yield values, scope
            return
        parameter = parameters[depth]
        active = True
        if parameter.when is not None:
            try:
                active = bool(parameter.when.evaluate(scope))
            except InapplicableError:
                active = False
        if not active:
            yield from descend(depth + 1)
            return
        for choice in parameter.choices:
            scope[parameter.name] = values[parameter.name] = choice
            yield from descend(depth + 1)
        scope[parameter.name] = None
        del values[parameter.name]

    yield from descend(0)
