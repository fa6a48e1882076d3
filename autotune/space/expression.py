"""Rules and conditions of a space file: a small, safe expression language.

An expression is parsed with Python's grammar; only the nodes named in `_Compiler` are
accepted, and each becomes a closure. Python's `eval` is never used.

A parameter that is inactive (its `when` is false) has the value None. Comparing it for
equality is fine; arithmetic or an order comparison with it makes the whole expression
inapplicable, which a rule counts as fulfilled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import UserError, did_you_mean
from autotune.space.operators import (
    ARITHMETIC,
    EQUALITY,
    EVALUATION_ERRORS,
    FUNCTIONS,
    ORDER,
    SIGNS,
)

Scope = Mapping[str, Any]
_Evaluate = Callable[[Scope], Any]

_ALLOWED = (
    "allowed are numbers, strings, lists, parameter names, model.*, cluster.*, "
    "and or not, comparisons, in, + - * / // % **, x if c else y, and abs, len, max, min"
)

# Far beyond what people write, and within what Python's stack holds.
_DEEPEST = 120


class InapplicableError(Exception):
    """The expression needs the value of a parameter that is inactive."""


@dataclass(frozen=True)
class Expression:
    """A parsed rule or condition.

    names: the parameters it reads. facts: the dotted names it reads, such as
    `model.num_heads`. tree: the checked syntax tree, of allowed nodes only.
    """

    text: str
    names: frozenset[str]
    facts: frozenset[str]
    tree: ast.expr = field(repr=False, compare=False)
    _evaluate: _Evaluate = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: object, where: str) -> Expression:
        """Parses `text`; `where` says for the error what it belongs to. Raises UserError."""
        if not isinstance(text, str):
            raise UserError(f"{where}: {text!r} is not an expression; write it as a quoted string")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            detail = error.msg if isinstance(error, SyntaxError) else str(error)
            raise UserError(f"{where}: cannot read {text!r}: {detail}; {_ALLOWED}") from None
        if _depth(tree.body) > _DEEPEST:
            raise UserError(
                f"{where}: {text[:60]!r}... has too many operations within each other, more than "
                f"{_DEEPEST}; write it as several rules"
            )
        compiler = _Compiler(text, where)
        evaluate = compiler.compile(tree.body)
        return cls(text, frozenset(compiler.names), frozenset(compiler.facts), tree.body, evaluate)

    def with_values(self, values: Mapping[str, Any]) -> Expression:
        """The expression with some parameters replaced by values that do not vary.

        values: of JSON types without mappings, None for a parameter that is inactive.
        """
        if not self.names & values.keys():
            return self
        tree = _Replaced(values).visit(ast.parse(self.text.strip(), mode="eval").body)
        return Expression.parse(ast.unparse(tree), self.text)

    def check_names(
        self, parameters: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]], where: str
    ) -> None:
        """Raises UserError for a name that is neither a parameter nor a known fact."""
        for name in sorted(self.names):
            if name not in parameters:
                known = [
                    *parameters,
                    *(f"{group}.{key}" for group in facts for key in facts[group]),
                ]
                raise UserError(
                    f"{where}: {self.text!r} names the unknown parameter {name!r}; "
                    f"{did_you_mean(name, known)}"
                )
        for fact in sorted(self.facts):
            group, _, key = fact.partition(".")
            if key not in facts[group]:
                known = [f"{group}.{name}" for name in facts[group]]
                raise UserError(
                    f"{where}: {self.text!r} names the unknown value {fact!r}; "
                    f"{did_you_mean(fact, known)}"
                )

    def evaluate(self, scope: Scope) -> Any:
        """The value in `scope`: parameters by name, and `model` and `cluster` as mappings.

        Raises InapplicableError, and UserError when the operation fails on these values.
        """
        try:
            return self._evaluate(scope)
        except EVALUATION_ERRORS as error:
            used = {name: scope.get(name) for name in sorted(self.names)}
            for fact in sorted(self.facts):
                group, _, key = fact.partition(".")
                used[fact] = scope[group].get(key)
            way_out = _guard(used) if isinstance(error, ZeroDivisionError) else ""
            raise UserError(
                f"cannot evaluate {self.text!r} with {used}: {error}{way_out}"
            ) from None

    def holds(self, scope: Scope) -> bool:
        """Whether a rule is fulfilled; one that is inapplicable is."""
        try:
            return bool(self.evaluate(scope))
        except InapplicableError:
            return True


def _guard(used: Mapping[str, Any]) -> str:
    """What to write where a division fails with these values."""
    zeros = (name for name, value in used.items() if value == 0 and value is not False)
    zero = next(zeros, "NAME")
    return (
        f"; say first what holds there: '{zero} == 0 or ...' allows it, '{zero} != 0 and ...' does "
        "not"
    )


class _Replaced(ast.NodeTransformer):
    """Puts values in the place of names; called names are functions, not parameters."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._values:
            return node
        return ast.parse(repr(self._values[node.id]), mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(part) for part in node.args]
        return node


def _depth(tree: ast.expr) -> int:
    """How many operations there are at most from the whole down to a value."""
    deepest = 0
    open_nodes: list[tuple[ast.AST, int]] = [(tree, 1)]
    while open_nodes:
        node, depth = open_nodes.pop()
        deepest = max(deepest, depth)
        # `a and b and c` is computed as `(a and b) and c`, and so is `a < b < c`.
        depth += len(node.values) if isinstance(node, ast.BoolOp) else 1
        depth += len(node.ops) if isinstance(node, ast.Compare) else 0
        open_nodes += [(child, depth) for child in ast.iter_child_nodes(node)]
    return deepest


_FACT_GROUPS = ("model", "cluster")


def _present(value: Any) -> Any:
    if value is None:
        raise InapplicableError
    return value


class _Compiler:
    """Turns a syntax tree into closures and collects the names it reads."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.names: set[str] = set()
        self.facts: set[str] = set()

    def compile(self, node: ast.expr) -> _Evaluate:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self._refused(ast.unparse(node))
        compiled: _Evaluate = method(node)
        return compiled

    def _refused(self, part: str) -> UserError:
        return UserError(f"{self.where}: {part!r} is not allowed in {self.text!r}; {_ALLOWED}")

    def _constant(self, node: ast.Constant) -> _Evaluate:
        value = node.value
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise self._refused(ast.unparse(node))
        return lambda scope: value

    def _name(self, node: ast.Name) -> _Evaluate:
        name = node.id
        if name in _FACT_GROUPS:
            raise self._refused(name)
        # YAML's spelling of the constants, which people carry over into rules.
        if name in ("true", "false", "null"):
            constant = {"true": True, "false": False, "null": None}[name]
            return lambda scope: constant
        self.names.add(name)
        return lambda scope: scope[name]

    def _attribute(self, node: ast.Attribute) -> _Evaluate:
        if not (isinstance(node.value, ast.Name) and node.value.id in _FACT_GROUPS):
            raise self._refused(ast.unparse(node))
        group, key = node.value.id, node.attr
        self.facts.add(f"{group}.{key}")
        return lambda scope: scope[group][key]

    def _list(self, node: ast.List | ast.Tuple) -> _Evaluate:
        parts = [self.compile(part) for part in node.elts]
        return lambda scope: [part(scope) for part in parts]

    _tuple = _list

    def _boolop(self, node: ast.BoolOp) -> _Evaluate:
        parts = [self.compile(part) for part in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope: all(part(scope) for part in parts)
        return lambda scope: any(part(scope) for part in parts)

    def _unaryop(self, node: ast.UnaryOp) -> _Evaluate:
        operand = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: not operand(scope)
        apply = SIGNS.get(type(node.op))
        if apply is None:
            raise self._refused(ast.unparse(node))
        return lambda scope: apply(_present(operand(scope)))

    def _binop(self, node: ast.BinOp) -> _Evaluate:
        apply = ARITHMETIC.get(type(node.op))
        if apply is None:
            raise self._refused(ast.unparse(node))
        left, right = self.compile(node.left), self.compile(node.right)
        return lambda scope: apply(_present(left(scope)), _present(right(scope)))

    def _compare(self, node: ast.Compare) -> _Evaluate:
        operands = [self.compile(part) for part in (node.left, *node.comparators)]
        links = [self._link(op) for op in node.ops]

        def evaluate(scope: Scope) -> bool:
            left = operands[0](scope)
            for link, operand in zip(links, operands[1:], strict=True):
                right = operand(scope)
                if not link(left, right):
                    return False
                left = right
            return True

        return evaluate

    def _link(self, op: ast.cmpop) -> Callable[[Any, Any], Any]:
        if type(op) in EQUALITY:
            return EQUALITY[type(op)]
        if type(op) not in ORDER:
            raise self._refused("is")
        order = ORDER[type(op)]
        return lambda a, b: order(_present(a), _present(b))

    def _ifexp(self, node: ast.IfExp) -> _Evaluate:
        test, then, other = (self.compile(part) for part in (node.test, node.body, node.orelse))
        return lambda scope: then(scope) if test(scope) else other(scope)

    def _call(self, node: ast.Call) -> _Evaluate:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            raise self._refused(ast.unparse(node))
        apply = FUNCTIONS[name]
        arguments = [self.compile(part) for part in node.args]
        return lambda scope: apply(*(_present(argument(scope)) for argument in arguments))
