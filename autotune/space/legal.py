"""The legal points of a space, each once, and what every rule excludes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autotune.errors import UserError
from autotune.space.definition import Parameter, Rule, SpaceDefinition
from autotune.space.expression import InapplicableError
from autotune.space.point import Point, canonical, plain


@dataclass(frozen=True)
class Exclusion:
    """What one rule does to the space.

    excluded: distinct combinations that break the rule, whatever the other rules say.
    alone: those of them that no other rule excludes.
    """

    rule: Rule
    excluded: int
    alone: int


@dataclass(frozen=True)
class LegalSpace:
    """All legal points in a fixed order, with the baseline among them.

    combinations: distinct combinations before the rules. A parameter whose condition is
    false has no value, so combinations that differ only there are one.
    """

    definition: SpaceDefinition
    points: tuple[Point, ...]
    baseline: Point
    combinations: int
    exclusions: tuple[Exclusion, ...]

    @classmethod
    def build(cls, definition: SpaceDefinition) -> LegalSpace:
        """Enumerates the space. Raises UserError when it is empty or the baseline is illegal."""
        points: list[Point] = []
        excluded = [0] * len(definition.rules)
        alone = [0] * len(definition.rules)
        combinations = 0
        for values, scope in _combinations(definition):
            combinations += 1
            broken = broken_rules(definition, scope)
            for number in broken:
                excluded[number] += 1
            if len(broken) == 1:
                alone[broken[0]] += 1
            if not broken:
                points.append(Point(values))
        exclusions = tuple(
            Exclusion(*row) for row in zip(definition.rules, excluded, alone, strict=True)
        )
        if not points:
            raise UserError(_empty_space(combinations, exclusions))
        return cls(definition, tuple(points), _baseline(definition), combinations, exclusions)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, each after those its condition reads."""
        return self.definition.parameters

    @cached_property
    def _by_key(self) -> dict[str, Point]:
        return {point.key: point for point in self.points}

    def find(self, values: Mapping[str, Any]) -> Point | None:
        """The legal point with these values, in the space's order of parameters, or None."""
        return self._by_key.get(canonical(dict(values)))


def active_scope(definition: SpaceDefinition, values: Mapping[str, Any]) -> dict[str, Any]:
    """What expressions read: the facts, and every parameter's value or None."""
    return {**definition.facts, **{p.name: values.get(p.name) for p in definition.parameters}}


def is_active(parameter: Parameter, scope: Mapping[str, Any]) -> bool:
    """Whether the parameter has a value, given those it depends on."""
    if parameter.when is None:
        return True
    try:
        return bool(parameter.when.evaluate(scope))
    except InapplicableError:
        return False


def broken_rules(definition: SpaceDefinition, scope: Mapping[str, Any]) -> list[int]:
    """The numbers of the rules that do not hold.

    Raises UserError for a rule that cannot be evaluated, unless another one excludes the
    combination anyway: rules may rely on each other, such as on a degree that divides.
    """
    broken: list[int] = []
    failure: UserError | None = None
    for number, rule in enumerate(definition.rules):
        try:
            if not rule.expression.holds(scope):
                broken.append(number)
        except UserError as error:
            failure = failure or error
    if failure is not None and not broken:
        raise failure
    return broken


def _combinations(
    definition: SpaceDefinition,
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Every distinct combination: its active values, and the scope for rules."""
    scope: dict[str, Any] = active_scope(definition, {})
    values: dict[str, Any] = {}

    def descend(depth: int) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
        if depth == len(definition.parameters):
            yield values, scope
            return
        parameter = definition.parameters[depth]
        if not is_active(parameter, scope):
            yield from descend(depth + 1)
            return
        for choice in parameter.choices:
            scope[parameter.name] = values[parameter.name] = choice
            yield from descend(depth + 1)
        scope[parameter.name] = None
        del values[parameter.name]

    yield from descend(0)


def _baseline(definition: SpaceDefinition) -> Point:
    scope: dict[str, Any] = active_scope(definition, {})
    values: dict[str, Any] = {}
    for parameter in definition.parameters:
        given = definition.baseline.get(parameter.name)
        if not is_active(parameter, scope):
            if given is not None:
                assert parameter.when is not None
                raise UserError(
                    f"space.baseline.{parameter.name}={plain(given)} has no effect, since "
                    f"{parameter.when.text!r} is false at the baseline; leave it out"
                )
            continue
        value = given
        if value is None and parameter.name not in definition.baseline:
            value = parameter.choices[0]
        scope[parameter.name] = values[parameter.name] = value
    broken = broken_rules(definition, scope)
    if broken:
        rule = definition.rules[broken[0]]
        raise UserError(
            f"space.baseline ({Point(values)}) breaks the rule {rule.expression.text!r}: "
            f"{rule.reason}; correct the baseline or the rule"
        )
    return Point(values)


def _empty_space(combinations: int, exclusions: tuple[Exclusion, ...]) -> str:
    lines = [f"the space is empty: the rules exclude all {combinations} combinations"]
    lines += [
        f"  {e.excluded:>8}  {e.rule.expression.text}  ({e.rule.reason})"
        for e in sorted(exclusions, key=lambda e: -e.excluded)
    ]
    lines.append("widen the choices or correct the rule that excludes the most")
    return "\n".join(lines)
