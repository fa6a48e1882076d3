"""A space file, checked: parameters, constraints, baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from autotune.errors import UserError, did_you_mean
from autotune.space.expression import Expression
from autotune.space.point import canonical, plain

Facts = Mapping[str, Mapping[str, Any]]
_PARAMETER_KEYS = ("choices", "ordered", "when", "memory")
_MEMORY = ("increases", "decreases")


RESULT_COLUMNS = (
    *("trial", "status", "batch_time_s", "batch_time_low_s", "batch_time_high_s", "steps"),
    *("peak_memory_bytes", "cost_s", "attempt", "baseline", "taken_from", "reason"),
)
"""Of a table of results beside the parameters, whose names these cannot be."""


@dataclass(frozen=True)
class Parameter:
    """One thing that may vary.

    choices: the values, of JSON types, in the order of the file. ordered: whether that
    order means something. when: the parameter has a value only where this holds.
    memory: how peak memory goes from the first choice to the last, where it is known.
    """

    name: str
    choices: tuple[Any, ...]
    ordered: bool = False
    when: Expression | None = None
    memory: Literal["increases", "decreases"] | None = None

    @classmethod
    def parse(cls, name: str, entry: object) -> Parameter:
        """From one entry of `space.parameters`. Raises UserError."""
        where = f"space.parameters.{name}"
        if not isinstance(name, str) or not name.isidentifier() or name in ("model", "cluster"):
            raise UserError(f"{where}: a parameter's name is a word such as sp_degree")
        if name in RESULT_COLUMNS:
            raise UserError(
                f"{where}: {name} is a column of the table of results; give the parameter another "
                f"name, such as {name}_choice"
            )
        if not isinstance(entry, Mapping):
            raise UserError(f"{where}: {entry!r} is not a mapping; write {{choices: [1, 2]}}")
        for key in entry:
            if key not in _PARAMETER_KEYS:
                raise UserError(
                    f"{where}: unknown key {key!r}; {did_you_mean(key, _PARAMETER_KEYS)}"
                )
        when = entry.get("when")
        return cls(
            name=name,
            choices=_choices(entry.get("choices"), where),
            ordered=_flag(entry.get("ordered", False), f"{where}.ordered"),
            when=None if when is None else Expression.parse(when, f"{where}.when"),
            memory=_memory(entry.get("memory"), where),
        )

    def index_of(self, value: Any) -> int:
        """The position of `value` among the choices, types included. Raises ValueError."""
        return [canonical(choice) for choice in self.choices].index(canonical(value))

    def __contains__(self, value: Any) -> bool:
        return canonical(value) in (canonical(choice) for choice in self.choices)


@dataclass(frozen=True)
class Rule:
    """A constraint that every legal point fulfils, with the reason a person is told.

    is_trainers: the training program's own, not the user's.
    """

    expression: Expression
    reason: str
    is_trainers: bool = False

    @property
    def told(self) -> str:
        """As a person is told of it; a trainer's expression says less than its reason."""
        if self.is_trainers:
            return f"of the training program: {self.reason}"
        return f"{self.expression.text}  ({self.reason})"

    @classmethod
    def of(cls, text: str, reason: str) -> Rule:
        """A trainer's, from an expression."""
        return cls(Expression.parse(text, reason), reason, is_trainers=True)

    @classmethod
    def parse(cls, number: int, entry: object) -> Rule:
        """From the entry `number` of `space.constraints`. Raises UserError."""
        where = f"space.constraints[{number}]"
        if not isinstance(entry, Mapping) or "rule" not in entry:
            raise UserError(
                f"{where}: {entry!r} is not a constraint; write {{rule: ..., reason: ...}}"
            )
        for key in entry:
            if key not in ("rule", "reason"):
                raise UserError(f"{where}: unknown key {key!r}; allowed: rule, reason")
        expression = Expression.parse(entry["rule"], where)
        return cls(expression, str(entry.get("reason") or expression.text))


@dataclass(frozen=True)
class SpaceDefinition:
    """Parameters in an order in which each `when` reads only earlier ones, and the rules.

    facts: what rules may read besides parameters: `model` and `cluster`.
    baseline: the user's present values; a parameter left out has its first choice.
    """

    parameters: tuple[Parameter, ...]
    rules: tuple[Rule, ...]
    facts: Facts
    baseline: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, space: Mapping[str, Any], facts: Facts) -> SpaceDefinition:
        """From the `space` part of the configuration. Raises UserError."""
        for key in space:
            if key not in ("parameters", "constraints", "baseline"):
                allowed = ("parameters", "constraints", "baseline")
                raise UserError(f"space: unknown key {key!r}; {did_you_mean(key, allowed)}")
        entries = space.get("parameters") or {}
        if not isinstance(entries, Mapping) or not entries:
            raise UserError(
                "space.parameters is empty; give at least one: {sp_degree: {choices: [1, 2]}}"
            )
        parameters = {name: Parameter.parse(name, entry) for name, entry in entries.items()}
        constraints = space.get("constraints") or []
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise UserError("space.constraints is not a list; write - {rule: ..., reason: ...}")
        rules = tuple(Rule.parse(number, entry) for number, entry in enumerate(constraints))
        for name, parameter in parameters.items():
            if parameter.when is not None:
                parameter.when.check_names(parameters, facts, f"space.parameters.{name}.when")
        for number, rule in enumerate(rules):
            rule.expression.check_names(parameters, facts, f"space.constraints[{number}]")
        baseline = space.get("baseline") or {}
        _check_baseline(baseline, parameters)
        return cls(_conditions_first(parameters), rules, facts, dict(baseline))

    def with_rules(self, rules: Sequence[Rule], fixed: Mapping[str, Any]) -> SpaceDefinition:
        """The definition with the rules of a trainer too.

        fixed: values of parameters that the rules may name and the space does not vary.
        Raises UserError where a rule needs a figure of the model or cluster that is not given.
        """
        varied = {parameter.name: parameter for parameter in self.parameters}
        values = {name: value for name, value in fixed.items() if name not in varied}
        bound = [replace(rule, expression=rule.expression.with_values(values)) for rule in rules]
        for rule in bound:
            _check_trainers_rule(rule, varied, self.facts)
        return replace(self, rules=(*self.rules, *bound))


def _check_trainers_rule(rule: Rule, parameters: Mapping[str, Parameter], facts: Facts) -> None:
    for fact in sorted(rule.expression.facts):
        group, _, key = fact.partition(".")
        if facts[group].get(key) is None:
            raise UserError(
                f"{fact} is not known, and the trainer's rule {rule.expression.text!r} "
                f"({rule.reason}) needs it; give {group}.dims.{key}=NUMBER"
                if group == "model"
                else f"{fact} is not known, and the trainer's rule {rule.reason!r} needs it"
            )
    rule.expression.check_names(parameters, facts, f"the trainer's rule {rule.reason!r}")


def _choices(value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise UserError(
            f"{where}.choices={value!r} is not a list of values; write choices: [1, 2, 4]"
        )
    seen = set()
    for choice in value:
        if canonical(choice) in seen:
            raise UserError(f"{where}.choices names {plain(choice)} twice; name each value once")
        if isinstance(choice, float) and not math.isfinite(choice):
            raise UserError(
                f"{where}.choices names the number {choice}, which no file of results can hold; "
                f"quote it where a text is meant: '{choice}'"
            )
        seen.add(canonical(choice))
    return tuple(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"{where}={value!r} must be true or false")
    return value


def _memory(value: object, where: str) -> Literal["increases", "decreases"] | None:
    if value is None:
        return None
    if value == "increases":
        return "increases"
    if value == "decreases":
        return "decreases"
    raise UserError(f"{where}.memory={value!r}; {did_you_mean(str(value), _MEMORY)}")


def _check_baseline(baseline: object, parameters: Mapping[str, Parameter]) -> None:
    if not isinstance(baseline, Mapping):
        raise UserError(f"space.baseline={baseline!r} is not a mapping; write {{sp_degree: 1}}")
    for name, value in baseline.items():
        if name not in parameters:
            raise UserError(
                f"space.baseline names the unknown parameter {name!r}; "
                f"{did_you_mean(str(name), parameters)}"
            )
        if value is not None and value not in parameters[name]:
            allowed = ", ".join(canonical(choice) for choice in parameters[name].choices)
            raise UserError(
                f"space.baseline.{name}={canonical(value)} is not among its choices; "
                f"allowed: {allowed}"
            )


def _conditions_first(parameters: Mapping[str, Parameter]) -> tuple[Parameter, ...]:
    """The parameters, each after those that its `when` reads, else in the order of the file."""
    ordered: list[Parameter] = []
    open_names: list[str] = []

    def place(parameter: Parameter) -> None:
        if parameter in ordered:
            return
        if parameter.name in open_names:
            circle = " -> ".join([*open_names[open_names.index(parameter.name) :], parameter.name])
            raise UserError(f"space.parameters: the conditions go in a circle: {circle}")
        open_names.append(parameter.name)
        for name in sorted(parameter.when.names if parameter.when else ()):
            place(parameters[name])
        open_names.pop()
        ordered.append(parameter)

    for parameter in parameters.values():
        place(parameter)
    return tuple(ordered)
