"""What the operators and functions of rules do with one set of values.

Each is there twice: as Python computes it, errors included, for `Expression`; and as an
*operation*, which takes and returns a `Mark` where there is no value, for expressions that
are computed over many combinations at once. An operation says of a mark what evaluation from
left to right says of the exception: whichever comes first is the answer.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from enum import Enum
from typing import Any

# What a failing operation raises; an expression turns them into an error for a person.
EVALUATION_ERRORS = (TypeError, ZeroDivisionError, OverflowError, ValueError)
_MAX_EXPONENT = 64


class Mark(Enum):
    """Stands where an expression has no value."""

    INAPPLICABLE = "inapplicable"
    FAILED = "failed"


Operation = Callable[..., Any]


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`, refused where the result could fill the memory."""
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError(f"the exponent {exponent} is beyond {_MAX_EXPONENT}")
    return base**exponent


def product(left: Any, right: Any) -> Any:
    """`left * right` of numbers."""
    if isinstance(left, (str, list)) or isinstance(right, (str, list)):
        raise TypeError("only numbers can be multiplied")
    return left * right


ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: product,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
EQUALITY: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "len": len, "max": max, "min": min}


def of_values(apply: Callable[..., Any]) -> Operation:
    """The operation of arithmetic, signs and functions: each operand must have a value."""

    def operation(*operands: Any) -> Any:
        for operand in operands:
            if isinstance(operand, Mark):
                return operand
            if operand is None:
                return Mark.INAPPLICABLE
        return _attempt(apply, operands)

    return operation


def comparison(kind: type[ast.cmpop]) -> Operation:
    """The operation of one comparison. Both sides are there before they are compared."""
    ordering = kind in ORDER
    apply = ORDER[kind] if ordering else EQUALITY[kind]

    def operation(left: Any, right: Any) -> Any:
        for operand in (left, right):
            if isinstance(operand, Mark):
                return operand
        if ordering and (left is None or right is None):
            return Mark.INAPPLICABLE
        result = _attempt(apply, (left, right))
        return result if isinstance(result, Mark) else bool(result)

    return operation


def conjunction(left: Any, right: Any) -> Any:
    """`left and right`; what is right counts only where the left is true."""
    return left if isinstance(left, Mark) else _truth(right) if left else False


def disjunction(left: Any, right: Any) -> Any:
    """`left or right`; what is right counts only where the left is false."""
    return left if isinstance(left, Mark) else True if left else _truth(right)


def negation(operand: Any) -> Any:
    """`not operand`."""
    return operand if isinstance(operand, Mark) else not operand


def choice(test: Any, then: Any, other: Any) -> Any:
    """`then if test else other`."""
    return test if isinstance(test, Mark) else then if test else other


def listing(*parts: Any) -> Any:
    """`[*parts]`."""
    marks = [part for part in parts if isinstance(part, Mark)]
    return marks[0] if marks else list(parts)


def _truth(operand: Any) -> Any:
    return operand if isinstance(operand, Mark) else bool(operand)


def _attempt(apply: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    try:
        return apply(*operands)
    except EVALUATION_ERRORS:
        return Mark.FAILED
