"""Points of another space as points of this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.space.definition import Parameter
from autotune.space.legal import LegalSpace, active_scope, is_active
from autotune.space.point import Point, canonical

Native = Callable[[Mapping[str, Any]], Any]
"""Values of parameters, of either space -> all that the trainer runs with, as plain data.

Configuration, arguments, environment: two that are equal are the same run. None where the
trainer would not run the values.
"""


class _UnknownValueError(Exception):
    """The value that a parameter had cannot be told."""


@dataclass(frozen=True)
class Matching:
    """native: of the trainer that made the runs; None where it cannot be asked."""

    space: LegalSpace
    native: Native | None = None

    def same_run(self, values: Mapping[str, Any]) -> Point | None:
        """The legal point that is the very run of these values, None where none is for certain.

        Parameters that only one of the two spaces has are compared by what the trainer is
        configured with: what the point says here, the base configuration may have said there.
        """
        direct = self.space.find(values)
        if direct is not None or self.native is None:
            return direct
        before = self.native(values)
        if before is None:
            return None
        text = canonical(before)
        point = self._completed(values, lambda parameter: self._in_fact(parameter, values, text))
        if point is None or canonical(self.native(point)) != text:
            return None
        return point

    def similar(self, values: Mapping[str, Any]) -> Point | None:
        """The legal point with the same values; parameters that are new stay as they are now."""
        direct = self.space.find(values)
        return self._completed(values, self._at_baseline) if direct is None else direct

    def _completed(
        self, values: Mapping[str, Any], missing: Callable[[Parameter], Any]
    ) -> Point | None:
        """The values of this space's active parameters; missing: of those without one."""
        scope = active_scope(self.space.definition, {})
        completed: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if not is_active(parameter, scope):
                continue
            known = parameter.name in values
            try:
                value = values[parameter.name] if known else missing(parameter)
            except _UnknownValueError:
                return None
            if value not in parameter:
                return None
            scope[parameter.name] = completed[parameter.name] = value
        return self.space.find(completed)

    def _in_fact(self, parameter: Parameter, values: Mapping[str, Any], native: str) -> Any:
        """The choice that a run of the values had, since it changes nothing of `native`."""
        assert self.native is not None
        for choice in parameter.choices:
            if canonical(self.native({**values, parameter.name: choice})) == native:
                return choice
        raise _UnknownValueError

    def _at_baseline(self, parameter: Parameter) -> Any:
        given = self.space.definition.baseline.get(parameter.name)
        return given if given in parameter else parameter.choices[0]
