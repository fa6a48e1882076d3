"""Operations on parts that are numbers, as nodes that numpy computes.

Each function returns None where the parts are not all numbers, or not held exactly: the
operation is then computed in Python.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autotune.space import numbers
from autotune.space.nodes import Native, Node
from autotune.space.numbers import TRUTH, Cells, Range

_LARGEST_POWER = 4


def _ranges(parts: Sequence[Node]) -> list[Range] | None:
    """The ranges of all parts, or None where one may hold what is no number."""
    ranges = [part.range for part in parts if part.range is not None]
    return ranges if len(ranges) == len(parts) else None


def negation(parts: Sequence[Node]) -> Node | None:
    """`not number`."""
    return Native(numbers.negated, parts, None, TRUTH) if _ranges(parts) else None


def sign(kind: type[ast.unaryop], parts: Sequence[Node]) -> Node | None:
    """`-number` and `+number`."""
    inner = parts[0].range
    if inner is None:
        return None
    low, high = (-inner.high, -inner.low) if kind is ast.USub else (inner.low, inner.high)
    factor = -1 if kind is ast.USub else 1
    return Native(
        lambda cells: Cells(cells.values * factor, numbers.marks_of_values(cells)),
        parts,
        replace(inner, low=low, high=high),
    )


def arithmetic(kind: type[ast.operator], parts: Sequence[Node]) -> Node | None:
    """`number + number`, and so on."""
    left, right = parts[0].range, parts[1].range
    if kind is ast.Pow:
        return _power(parts)
    range_ = left and right and numbers.arithmetic_range(kind, left, right)
    if range_ is None or right is None:
        return None
    zero = right.zero
    return Native(lambda a, b: numbers.arithmetic(kind, a, b, zero), parts, range_)


def _power(parts: Sequence[Node]) -> Node | None:
    """An integer to a fixed small power."""
    base, exponents = parts[0].range, parts[1].domain
    if base is None or not base.whole or exponents is None or len(exponents) != 1:
        return None
    exponent = exponents[0]
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_POWER:
        return None
    most = max(1, base.size**exponent)
    range_ = numbers.checked(replace(base, low=-most, high=most))
    if range_ is None or parts[1].grows:
        return None
    return Native(
        lambda cells, _: Cells(cells.values**exponent, numbers.marks_of_values(cells)),
        parts,
        range_,
    )


def comparison(kind: type[ast.cmpop], parts: Sequence[Node]) -> Node | None:
    """`number < number`, and so on, and `number in list`."""
    if kind in (ast.In, ast.NotIn):
        return _membership(kind is ast.NotIn, parts)
    left, right = parts[0].range, parts[1].range
    if left is None or right is None:
        return None
    if left.whole != right.whole and not (left.fits_float and right.fits_float):
        return None
    return Native(lambda a, b: numbers.compare(kind, a, b), parts, None, TRUTH)


def _membership(negated: bool, parts: Sequence[Node]) -> Node | None:
    """`number in list`, where the list is always the same one."""
    left, options = parts[0].range, parts[1].domain
    if left is None or not left.fits_float or options is None or len(options) != 1:
        return None
    items = options[0]
    if not isinstance(items, (list, tuple)) or parts[1].names or parts[1].grows:
        return None
    inside = [item for item in items if isinstance(item, (int, float))]
    among = numbers.range_of(inside)
    if among is None or not among.fits_float:
        return None
    array, none = numbers.as_numbers(inside, among).values, None in items
    return Native(
        lambda cells: numbers.contained(cells, array, none, negated), parts[:1], None, TRUTH
    )


def choice(parts: Sequence[Node]) -> Node | None:
    """`number if truth else number`."""
    ranges = _ranges(parts)
    range_ = _either(ranges[1:]) if ranges else None
    if ranges is None or range_ is None:
        return None
    marked = ranges[0].marked or range_.marked
    return Native(numbers.select, parts, replace(range_, marked=marked))


def call(name: str, parts: Sequence[Node]) -> Node | None:
    """`abs(number)`, and `max` and `min` of several."""
    ranges = _ranges(parts)
    if not ranges or (name == "abs") != (len(parts) == 1):
        return None
    if name == "abs":
        return Native(
            lambda cells: Cells(np.abs(cells.values), numbers.marks_of_values(cells)),
            parts,
            replace(ranges[0], low=0, high=ranges[0].size),
        )
    range_ = _either(ranges) if name in ("max", "min") else None
    if range_ is None:
        return None
    largest = name == "max"
    return Native(lambda *cells: numbers.extreme(largest, *cells), parts, range_)


def _either(ranges: Sequence[Range]) -> Range | None:
    """The range of a number that may come from any of these."""
    whole = all(range_.whole for range_ in ranges)
    if not whole and not all(range_.fits_float for range_ in ranges):
        return None
    return Range(
        low=min(range_.low for range_ in ranges),
        high=max(range_.high for range_ in ranges),
        whole=whole,
        mixed=not whole and any(range_.whole or range_.mixed for range_ in ranges),
        marked=any(range_.marked for range_ in ranges),
    )
