"""One combination, evaluated as the space file is read: active parameters and broken rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune.errors import UserError
from autotune.space.definition import Parameter, SpaceDefinition
from autotune.space.expression import InapplicableError
from autotune.space.point import Point, canonical, plain


def active_scope(definition: SpaceDefinition, values: Mapping[str, Any]) -> dict[str, Any]:
    """What expressions read: the facts, and every parameter's value or None."""
    return {**definition.facts, **{p.name: values.get(p.name) for p in definition.parameters}}


def is_active(parameter: Parameter, scope: Mapping[str, Any]) -> bool:
    """Whether the parameter has a value, given those it depends on. Raises UserError."""
    if parameter.when is None:
        return True
    try:
        return bool(parameter.when.evaluate(scope))
    except InapplicableError:
        return False
    except UserError as error:
        raise UserError(f"space.parameters.{parameter.name}.when: {error}") from None


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
            # A trainer's rules stand behind those of the space file.
            of = f"the {rule.reason!r} rule of the trainer"
            where = of if rule.is_trainers else f"space.constraints[{number}]"
            failure = failure or UserError(f"{where}: {error}")
    if failure is not None and not broken:
        raise failure
    return broken


def has_active(definition: SpaceDefinition, values: Mapping[str, Any]) -> bool:
    """Whether exactly the active parameters have values."""
    scope = active_scope(definition, values)
    try:
        return values.keys() == {p.name for p in definition.parameters if is_active(p, scope)}
    except UserError:
        return False


def is_legal(definition: SpaceDefinition, values: Mapping[str, Any]) -> bool:
    """Whether exactly the active parameters have values, and these break no rule."""
    try:
        return has_active(definition, values) and not broken_rules(
            definition, active_scope(definition, values)
        )
    except UserError:
        return False


def legal_baseline(definition: SpaceDefinition) -> Point:
    """The baseline, with first choices where it is silent. Raises UserError if it is illegal."""
    scope = active_scope(definition, {})
    values: dict[str, Any] = {}
    for parameter in definition.parameters:
        given = definition.baseline.get(parameter.name)
        if is_active(parameter, scope):
            value = _baseline_value(definition, parameter)
            scope[parameter.name] = values[parameter.name] = value
        elif given is not None:
            assert parameter.when is not None
            raise UserError(
                f"space.baseline.{parameter.name}={plain(given)} has no effect, since "
                f"{parameter.when.text!r} is false at the baseline; leave it out"
            )
    broken = broken_rules(definition, scope)
    if broken:
        rule = definition.rules[broken[0]]
        raise UserError(
            f"space.baseline ({Point(values)}) breaks the rule {rule.told}; correct the baseline"
            f"{'' if rule.is_trainers else ' or the rule'}"
        )
    return Point(values)


def _baseline_value(definition: SpaceDefinition, parameter: Parameter) -> Any:
    value = definition.baseline.get(parameter.name, parameter.choices[0])
    if value not in parameter:  # null, which stands for no value in a baseline
        allowed = ", ".join(canonical(choice) for choice in parameter.choices)
        raise UserError(
            f"space.baseline.{parameter.name}={canonical(value)} is not among its choices; "
            f"allowed: {allowed}"
        )
    return value
