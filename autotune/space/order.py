"""The order in which a space's parameters are decided."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

from autotune.space.definition import Parameter, Rule
from autotune.space.expression import Expression


def deciding_order(parameters: Sequence[Parameter], rules: Sequence[Rule]) -> list[int]:
    """The positions of the parameters in the order that lets rules speak early.

    The rule that has the fewest combinations left comes next, with its parameters in the order
    in which it reads them: then few rules are half read at a time, and of those little has to
    be remembered. A parameter comes after those that its condition reads; one that no rule
    reads, right after them, so that the condition can be forgotten, or at the end.
    """
    placing = _Placing({parameter.name: parameter for parameter in parameters}, rules)
    waiting = list(rules)
    while waiting:
        rule = min(waiting, key=placing.left)
        waiting.remove(rule)
        for name in _reading_order(rule.expression):
            placing.place(name)
    for parameter in parameters:
        placing.place(parameter.name)
    position = {parameter.name: number for number, parameter in enumerate(parameters)}
    return [position[name] for name in placing.placed]


class _Placing:
    """The parameters in their order so far, as keys of `placed`."""

    def __init__(self, parameters: Mapping[str, Parameter], rules: Sequence[Rule]) -> None:
        self.parameters = parameters
        self.placed: dict[str, None] = {}
        read = frozenset().union(*(rule.expression.names for rule in rules))
        self._followers = [p for p in parameters.values() if p.when and p.name not in read]

    def left(self, rule: Rule) -> int:
        """The number of combinations of what the rule reads and is not placed."""
        names = rule.expression.names - self.placed.keys()
        return math.prod(len(self.parameters[name].choices) for name in names)

    def place(self, name: str) -> None:
        """Places the parameter after those that its condition reads, unless it is placed."""
        if name in self.placed:
            return
        when = self.parameters[name].when
        for earlier in _reading_order(when) if when else ():
            self.place(earlier)
        self.placed[name] = None
        for follower in self._followers:
            if follower.when and name in follower.when.names <= self.placed.keys():
                self.place(follower.name)


def _reading_order(expression: Expression) -> list[str]:
    """The parameters of an expression from left to right."""
    names = [node for node in ast.walk(expression.tree) if isinstance(node, ast.Name)]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in names if node.id in expression.names))
