"""Arithmetic and comparisons of many numbers at once, exactly as Python does them.

Numbers are held as int64 where all of them are Python's integers, and as float64 otherwise.
A `Range` says beforehand what may come out; where that would leave what these types hold
exactly, there is no range, and the caller computes with Python's own numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.operators import Mark

# What a cell holds instead of a number; 0 where it holds one.
INAPPLICABLE, FAILED, NONE = 1, 2, 3
# The values of a comparison, by code. The marks are at 1 + their number.
TRUTH: tuple[Any, ...] = (False, True, Mark.INAPPLICABLE, Mark.FAILED)

_LARGEST_INT = 2**62
_LARGEST_EXACT_FLOAT = 2**53
_MARKS = {Mark.INAPPLICABLE: INAPPLICABLE, Mark.FAILED: FAILED, None: NONE}

Marks = NDArray[np.uint8] | None


@dataclass(frozen=True, eq=False)
class Cells:
    """Values over a grid of combinations, of any shapes that broadcast together.

    values: numbers, or codes of a domain. marks: why a cell holds no number, 0 where it does;
    None where all do. Always None for codes. The value of a marked cell means nothing, but of
    one that holds null it is 0.
    """

    values: NDArray[Any]
    marks: Marks = None


@dataclass(frozen=True)
class Range:
    """What numbers may occur.

    low, high: bounds on those that are Python's integers. whole: all of them are.
    mixed: integers and floats together, held as floats. marked: some cells may hold none.
    """

    low: float
    high: float
    whole: bool
    mixed: bool = False
    marked: bool = False

    @property
    def size(self) -> float:
        """The largest magnitude of an integer."""
        return max(abs(self.low), abs(self.high))

    @property
    def fits_float(self) -> bool:
        """Whether every integer is a float without rounding."""
        return not self.whole or self.size <= _LARGEST_EXACT_FLOAT

    @property
    def zero(self) -> bool:
        """Whether 0 may occur."""
        return not self.whole or self.low <= 0 <= self.high


def checked(range_: Range) -> Range | None:
    """The range, unless its integers are beyond what is held exactly."""
    if range_.whole:
        return range_ if range_.size <= _LARGEST_INT else None
    return range_ if not range_.mixed or range_.size <= _LARGEST_EXACT_FLOAT else None


def range_of(domain: Sequence[Any]) -> Range | None:
    """The range of a domain of numbers, marks and None; None where it has anything else."""
    numbers = [value for value in domain if not isinstance(value, Mark) and value is not None]
    if not all(isinstance(value, (int, float)) and value == value for value in numbers):
        return None
    whole = [value for value in numbers if isinstance(value, int)]
    return checked(
        Range(
            low=min(whole, default=0),
            high=max(whole, default=0),
            whole=len(whole) == len(numbers),
            mixed=0 < len(whole) < len(numbers),
            marked=len(numbers) < len(domain),
        )
    )


def as_numbers(domain: Sequence[Any], range_: Range) -> Cells:
    """The domain as cells, by code."""
    marks = [_MARKS[v] if isinstance(v, Mark) or v is None else 0 for v in domain]
    numbers = [0 if mark else value for value, mark in zip(domain, marks, strict=True)]
    values = np.array(numbers, np.int64 if range_.whole else np.float64)
    return Cells(values, np.array(marks, np.uint8) if range_.marked else None)


_UFUNCS: dict[type[ast.operator], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
}
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


def arithmetic_range(kind: type[ast.operator], left: Range, right: Range) -> Range | None:
    """The range of `left kind right`, or None where it has to be computed in Python."""
    whole = left.whole and right.whole and kind is not ast.Div
    if kind not in _UFUNCS or not (whole or (left.fits_float and right.fits_float)):
        return None
    low, high = _bounds(kind, left, right)
    integers = all(side.whole or side.mixed for side in (left, right)) and kind is not ast.Div
    marked = left.marked or right.marked or (kind in _DIVISIONS and right.zero)
    return checked(Range(low, high, whole, integers and not whole, marked))


def _bounds(kind: type[ast.operator], left: Range, right: Range) -> tuple[float, float]:
    if kind is ast.Add:
        return left.low + right.low, left.high + right.high
    if kind is ast.Sub:
        return left.low - right.high, left.high - right.low
    if kind is ast.Mult:
        corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return min(corners), max(corners)
    size = right.size if kind is ast.Mod else left.size
    return -size, size


def arithmetic(kind: type[ast.operator], left: Cells, right: Cells, zero: bool) -> Cells:
    """`left kind right`. zero: whether the right side may be 0, by which division fails."""
    with np.errstate(all="ignore"):
        values = _UFUNCS[kind](left.values, right.values)
    marks = marks_of_values(left, right)
    if zero and kind in _DIVISIONS:
        failed = np.where(right.values == 0, np.uint8(FAILED), np.uint8(0))
        marks = _first(marks, failed)
    return Cells(values, marks)


def extreme(largest: bool, *parts: Cells) -> Cells:
    """`max` or `min` of two or more, as Python finds it: the first of equal ones."""
    best = parts[0].values
    for part in parts[1:]:
        better = part.values > best if largest else part.values < best
        best = np.where(better, part.values, best)
    return Cells(best, marks_of_values(*parts))


def select(test: Cells, then: Cells, other: Cells) -> Cells:
    """`then if test else other`; test: 0 or 1."""
    holds = test.values != 0
    values = np.where(holds, then.values, other.values)
    branch = np.where(holds, _given(then.marks), _given(other.marks))
    if test.marks is None and then.marks is None and other.marks is None:
        return Cells(values)
    return Cells(values, _first(test.marks, branch))


def compare(kind: type[ast.cmpop], left: Cells, right: Cells) -> Cells:
    """`left kind right` as codes of `TRUTH`."""
    if kind in (ast.Eq, ast.NotEq):
        same = left.values == right.values
        if left.marks is not None or right.marks is not None:
            none = (_given(left.marks) == NONE), (_given(right.marks) == NONE)
            same = np.where(none[0] | none[1], none[0] & none[1], same)
        return _truth(same if kind is ast.Eq else ~same, _first(_real(left), _real(right)))
    holds = {
        ast.Lt: np.less,
        ast.LtE: np.less_equal,
        ast.Gt: np.greater,
        ast.GtE: np.greater_equal,
    }[kind](left.values, right.values)
    # Both sides are there before they are compared, so a failure on the right comes first.
    marks = _first(_first(_real(left), _real(right)), marks_of_values(left, right))
    return _truth(holds, marks)


def contained(left: Cells, numbers: NDArray[Any], none: bool, negated: bool) -> Cells:
    """`left in [...]` as codes of `TRUTH`. none: whether the list names null."""
    holds = np.isin(left.values, numbers)
    if left.marks is not None:
        holds = np.where(left.marks == NONE, none, holds)
    return _truth(~holds if negated else holds, _real(left))


def negated(operand: Cells) -> Cells:
    """`not operand` as codes of `TRUTH`."""
    false = operand.values == 0
    return _truth(false, _real(operand))


def marks_of_values(*parts: Cells) -> Marks:
    """The marks of an operation that needs a value of each part: the first part's first."""
    marks: Marks = None
    for part in parts:
        if part.marks is not None:
            needed = np.where(part.marks == NONE, np.uint8(INAPPLICABLE), part.marks)
            marks = _first(marks, needed)
    return marks


def _truth(holds: NDArray[np.bool_], marks: Marks) -> Cells:
    codes = holds.astype(np.intp)
    return Cells(codes if marks is None else np.where(marks == 0, codes, 1 + marks.astype(np.intp)))


def _real(cells: Cells) -> Marks:
    """Marks without those of null, which is a value here."""
    if cells.marks is None:
        return None
    return np.where(cells.marks == NONE, np.uint8(0), cells.marks)


def _given(marks: Marks) -> NDArray[np.uint8]:
    return np.zeros((), np.uint8) if marks is None else marks


def _first(marks: Marks, others: Marks) -> Marks:
    if marks is None or others is None:
        return others if marks is None else marks
    return np.where(marks != 0, marks, others)
