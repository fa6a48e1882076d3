"""Equal rows of integer columns, found and numbered without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Keys of several columns are packed into one integer up to here, so that nothing overflows.
LARGEST_KEY = 1 << 62
# A table over all keys is quicker than sorting them while it is not much larger than they are.
_SMALL_TABLE = 1 << 12
# Of more rows than this, some are looked at first to see whether grouping is worth its time.
_MANY = 1 << 20
_LOOKED_AT = 1 << 16
_WORTHWHILE = 2.5

Groups = tuple[NDArray[np.int32], NDArray[np.int64]]


def group_rows(columns: Sequence[NDArray[Any]], count: int) -> Groups:
    """The group of each of `count` rows, and one row of each group.

    columns: arrays (count,) of integers, or of floats, which are told apart by their bits.
    Groups are numbered from 0 in the lexicographic order of their integers.
    """
    if count == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    key, size = np.zeros(count, np.int64), 1
    for column in columns:
        column, low, digits = _digit(column)
        if digits == 1:
            continue
        if size * digits > LARGEST_KEY:
            key, size = _dense(key, size)
        if size * digits > LARGEST_KEY:
            column, digits = _dense(column.astype(np.int64) - low, digits)
            low = 0
        np.multiply(key, digits, out=key)
        np.add(key, column, out=key)
        np.subtract(key, low, out=key)
        size *= digits
    return _number(key, size)


def merge_rows(columns: Sequence[NDArray[Any]], count: int) -> Groups:
    """As `group_rows`, but each row may stay its own group where few of many are equal."""
    if count > _MANY:
        # As many pairs of equal rows are among some rows as their share of all pairs says.
        some = np.unique(np.random.default_rng(0).integers(0, count, _LOOKED_AT))
        _, first = group_rows([column[some] for column in columns], len(some))
        equal = len(some) - len(first)
        if equal < _WORTHWHILE * len(some) ** 2 / (2 * count):
            return np.arange(count, dtype=np.int32), np.arange(count)
    return group_rows(columns, count)


def _digit(column: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """The column as integers, the lowest of them, and how many there may be from there up."""
    if column.dtype.kind == "f":
        column = column.view(np.int64)
    low, high = int(column.min()), int(column.max())
    digits = high - low + 1
    if digits > LARGEST_KEY:
        groups, first = _sorted(column)
        return groups, 0, len(first)
    return column, low, digits


def _dense(key: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    groups, first = _number(key, size)
    return groups.astype(np.int64), len(first)


def _number(key: NDArray[np.int64], size: int) -> Groups:
    if size > max(2 * len(key), _SMALL_TABLE):
        return _sorted(key)
    row_of = np.full(size, -1, np.int64)
    row_of[key] = np.arange(len(key))
    present = np.flatnonzero(row_of >= 0)
    group_of = np.zeros(size, np.int32)
    group_of[present] = np.arange(len(present), dtype=np.int32)
    return group_of[key], row_of[present]


def _sorted(key: NDArray[np.int64]) -> Groups:
    order = np.argsort(key)
    ordered = key[order]
    begins = np.ones(len(key), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    groups = np.empty(len(key), np.int32)
    groups[order] = np.cumsum(begins, dtype=np.int32) - 1
    return groups, order[begins]
