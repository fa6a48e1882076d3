"""Syntax trees of rules and conditions -> nodes that are computed over many combinations.

The scalar `Expression.evaluate` is what a rule means. Here the same tree is rewritten into
operations of at most a few operands, without a change of meaning: `a and b and c` is
`(a and b) and c`, `a < b < c` is `a < b and b < c`, and `max(a, b, c)` of numbers is
`max(max(a, b), c)`. So less has to be remembered of operands that are known already.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autotune.space import native
from autotune.space.nodes import Growing, Leaf, Node, Table
from autotune.space.numbers import TRUTH
from autotune.space.operators import (
    ARITHMETIC,
    FUNCTIONS,
    SIGNS,
    Operation,
    choice,
    comparison,
    conjunction,
    disjunction,
    listing,
    negation,
    of_values,
)

# An operation is computed for all combinations of its operands' values up to this many.
_TABLE = 1024

_MakeNative = Callable[[Sequence[Node]], Node | None]


class Vectoriser:
    """Makes nodes over the given leaves; equal parts of expressions become one node."""

    def __init__(
        self,
        leaves: Mapping[str, Leaf],
        facts: Mapping[str, Mapping[str, Any]],
        table: int = _TABLE,
    ) -> None:
        self.leaves, self.facts, self.table = leaves, facts, table
        self._nodes: dict[tuple[str, bool], Node] = {}

    def truth(self, tree: ast.expr) -> Node:
        """The node of a checked tree's truth; its domain is among `TRUTH`."""
        return self.node(_as_truth(tree))

    def node(self, tree: ast.expr, exact: bool = False) -> Node:
        """The node of a checked tree. exact: all nodes below it have domains."""
        key = (ast.dump(tree), exact)
        if key not in self._nodes:
            make = getattr(self, f"_{type(tree).__name__.lower()}")
            self._nodes[key] = make(tree, exact)
        return self._nodes[key]

    def _operation(
        self,
        operation: Operation,
        parts: Sequence[ast.expr],
        exact: bool,
        make_native: _MakeNative | None = None,
        domain: Sequence[Any] = (),
    ) -> Node:
        """domain: what the operation may yield at most, where that is few."""
        children = [self.node(part, exact) for part in parts]
        sizes = [0 if c.domain is None or c.grows else len(c.domain) for c in children]
        if 0 not in sizes and math.prod(sizes) <= self.table:
            return Table(operation, children)
        made = make_native(children) if make_native and not exact else None
        return made or Growing(operation, [self.node(part, True) for part in parts], domain)

    def _constant(self, tree: ast.Constant, exact: bool) -> Node:
        return _fixed(tree.value)

    def _name(self, tree: ast.Name, exact: bool) -> Node:
        constants = {"true": True, "false": False, "null": None}
        return _fixed(constants[tree.id]) if tree.id in constants else self.leaves[tree.id]

    def _attribute(self, tree: ast.Attribute, exact: bool) -> Node:
        assert isinstance(tree.value, ast.Name)
        return _fixed(self.facts[tree.value.id][tree.attr])

    def _list(self, tree: ast.List | ast.Tuple, exact: bool) -> Node:
        return self._operation(listing, tree.elts, exact)

    _tuple = _list

    def _boolop(self, tree: ast.BoolOp, exact: bool) -> Node:
        *rest, last = (_as_truth(part) for part in tree.values)
        left = ast.BoolOp(tree.op, rest) if len(rest) > 1 else rest[0]
        operation = conjunction if isinstance(tree.op, ast.And) else disjunction
        return self._operation(operation, [left, last], exact, domain=TRUTH)

    def _unaryop(self, tree: ast.UnaryOp, exact: bool) -> Node:
        kind = type(tree.op)
        if kind is ast.Not:
            return self._operation(negation, [tree.operand], exact, native.negation, TRUTH)
        sign = of_values(SIGNS[kind])
        return self._operation(sign, [tree.operand], exact, lambda parts: native.sign(kind, parts))

    def _binop(self, tree: ast.BinOp, exact: bool) -> Node:
        kind = type(tree.op)
        return self._operation(
            of_values(ARITHMETIC[kind]),
            [tree.left, tree.right],
            exact,
            lambda parts: native.arithmetic(kind, parts),
        )

    def _compare(self, tree: ast.Compare, exact: bool) -> Node:
        if len(tree.ops) > 1:
            sides = [tree.left, *tree.comparators]
            links: list[ast.expr] = [
                ast.Compare(left, [op], [right])
                for left, op, right in zip(sides, tree.ops, sides[1:], strict=False)
            ]
            return self.node(ast.BoolOp(ast.And(), links), exact)
        kind = type(tree.ops[0])
        return self._operation(
            comparison(kind),
            [tree.left, tree.comparators[0]],
            exact,
            lambda parts: native.comparison(kind, parts),
            TRUTH,
        )

    def _ifexp(self, tree: ast.IfExp, exact: bool) -> Node:
        parts = [_as_truth(tree.test), tree.body, tree.orelse]
        return self._operation(choice, parts, exact, native.choice)

    def _call(self, tree: ast.Call, exact: bool) -> Node:
        assert isinstance(tree.func, ast.Name)
        name, rest = tree.func.id, tree.args[:-1]
        if name in ("max", "min") and len(rest) > 1 and self._all_numbers(tree.args, exact):
            folded = ast.Call(tree.func, rest, [])
            return self.node(ast.Call(tree.func, [folded, tree.args[-1]], []), exact)
        return self._operation(
            of_values(FUNCTIONS[name]), tree.args, exact, lambda parts: native.call(name, parts)
        )

    def _all_numbers(self, parts: Sequence[ast.expr], exact: bool) -> bool:
        return all(self.node(part, exact).range is not None for part in parts)


def _fixed(value: Any) -> Node:
    return Table(lambda: value, ())


def _as_truth(tree: ast.expr) -> ast.expr:
    if isinstance(tree, (ast.Compare, ast.BoolOp)):
        return tree
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return tree
    return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), tree))
