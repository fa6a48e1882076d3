"""Rules for parameters that may have no value at a point.

What a point leaves out stays as the base has it, so a rule takes the base's value there. Without
that it would not apply, and let through what the base's value breaks.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space.definition import Rule


def with_base_values(
    rules: Sequence[Rule], values: Mapping[str, Any], names: Sequence[str]
) -> tuple[Rule, ...]:
    """The rules, each of the names read as `(name if name != None else BASE)`."""
    present = {name: values[name] for name in names if values.get(name) is not None}
    return tuple(_settled(rule, present) for rule in rules)


def _settled(rule: Rule, present: Mapping[str, Any]) -> Rule:
    if not rule.expression.names & present.keys():
        return rule
    tree = ast.parse(rule.expression.text.strip(), mode="eval").body
    text = ast.unparse(_Settled(present).visit(tree))
    return Rule.of(text, rule.reason)


class _Settled(ast.NodeTransformer):
    def __init__(self, present: Mapping[str, Any]) -> None:
        self._present = present

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._present:
            return node
        text = f"({node.id} if {node.id} != None else {self._present[node.id]!r})"
        return ast.parse(text, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(part) for part in node.args]
        return node
