"""Nodes of an expression that is computed over many combinations at once.

A node holds either codes into a domain, a list of Python values and marks, or numbers. With a
small domain its operation is computed once for every combination of its operands' values and
then looked up; that is exact for any type. Numbers of large domains are computed by numpy.
What fits neither is computed in Python for each distinct combination that occurs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from autotune.space.grouping import group_rows
from autotune.space.numbers import Cells, Range, as_numbers, range_of
from autotune.space.operators import Operation


class Node(ABC):
    """One node. names: the parameters below it. domain: None where the cells hold numbers.

    range: what numbers it may hold, also by way of its domain; None where it may hold others.
    grows: whether the domain is found while computing.
    """

    grows = False

    def __init__(
        self, children: Sequence[Node], domain: list[Any] | None, range_: Range | None
    ) -> None:
        self.children = tuple(children)
        self.names: frozenset[str] = frozenset().union(*(child.names for child in children))
        self.domain, self.range = domain, range_
        if domain is not None and range_ is not None:
            self._numbers = as_numbers(domain, range_)

    @abstractmethod
    def compute(self, *operands: Cells) -> Cells:
        """The node's cells from those of its children."""

    def numbers(self, cells: Cells) -> Cells:
        """The node's cells as numbers; it must have a range."""
        if self.domain is None:
            return cells
        marks = self._numbers.marks
        return Cells(
            self._numbers.values.take(cells.values),
            None if marks is None else marks.take(cells.values),
        )


class Leaf(Node):
    """A parameter: a cell holds the place of its value in the domain."""

    def __init__(self, name: str, domain: Sequence[Any]) -> None:
        super().__init__((), list(domain), range_of(domain))
        self.names = frozenset((name,))

    def compute(self, *operands: Cells) -> Cells:
        """Never asked for: a leaf's cells are given."""
        raise AssertionError(f"no values are given for {set(self.names)}")


class Table(Node):
    """An operation that is looked up. Without children, a constant."""

    def __init__(self, operation: Operation, children: Sequence[Node]) -> None:
        domains = [child.domain for child in children if child.domain is not None]
        assert len(domains) == len(children), "a table is over domains"
        codes, domain = _distinct([operation(*values) for values in product(*domains)])
        super().__init__(children, domain, range_of(domain))
        self._sizes = [len(values) for values in domains]
        self._codes = np.array(codes, np.intp)

    def compute(self, *operands: Cells) -> Cells:
        """Looks the codes up."""
        place: Any = np.zeros((), np.intp)
        for cells, size in zip(operands, self._sizes, strict=True):
            place = place * size + cells.values
        return Cells(self._codes.take(place))


class Native(Node):
    """An operation on numbers that numpy computes, to numbers or to codes of `domain`."""

    def __init__(
        self,
        function: Callable[..., Cells],
        children: Sequence[Node],
        range_: Range | None,
        domain: Sequence[Any] | None = None,
    ) -> None:
        if domain is not None:
            range_ = range_of(domain)
        super().__init__(children, None if domain is None else list(domain), range_)
        self._function = function

    def compute(self, *operands: Cells) -> Cells:
        """Computes with the children's numbers."""
        pairs = zip(self.children, operands, strict=True)
        return self._function(*(child.numbers(cells) for child, cells in pairs))


class Growing(Node):
    """An operation that Python computes for each combination of values that occurs."""

    def __init__(
        self, operation: Operation, children: Sequence[Node], domain: Sequence[Any] = ()
    ) -> None:
        """domain: all values that there can be, where that is known."""
        super().__init__(children, list(domain), range_of(domain) if domain else None)
        self.grows = not domain
        self._operation = operation
        self._known: dict[tuple[int, ...], int] = {}
        self._code_of = {_identity(value): code for code, value in enumerate(domain)}

    @property
    def computed(self) -> int:
        """How many combinations of its operands' values were computed."""
        return len(self._known)

    def compute(self, *operands: Cells) -> Cells:
        """Computes what has not been computed before."""
        codes = np.broadcast_arrays(*(cells.values for cells in operands))
        columns = [column.ravel() for column in codes]
        groups, first = group_rows(columns, columns[0].size)
        rows = zip(*(column[first].tolist() for column in columns), strict=True)
        found = np.array([self._code(row) for row in rows], np.intp)
        return Cells(found[groups].reshape(codes[0].shape))

    def _code(self, row: tuple[int, ...]) -> int:
        if row not in self._known:
            operands = []
            for child, code in zip(self.children, row, strict=True):
                assert child.domain is not None
                operands.append(child.domain[code])
            self._known[row] = self._intern(self._operation(*operands))
        return self._known[row]

    def _intern(self, value: Any) -> int:
        assert self.domain is not None
        code = self._code_of.setdefault(_identity(value), len(self.domain))
        if code == len(self.domain):
            self.domain.append(value)
        return code


def evaluate(node: Node, known: dict[Node, Cells]) -> Cells:
    """The node's cells from the `known` cells of nodes below it, which are added to."""
    if node not in known:
        known[node] = node.compute(*(evaluate(child, known) for child in node.children))
    return known[node]


def nodes_below(nodes: Sequence[Node]) -> list[Node]:
    """These nodes and all below them, each once."""
    found: dict[Node, None] = {}
    open_nodes = list(nodes)
    while open_nodes:
        node = open_nodes.pop()
        if node not in found:
            found[node] = None
            open_nodes.extend(node.children)
    return list(found)


def _distinct(values: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The code of each value, and the distinct values by code."""
    code_of: dict[Any, int] = {}
    domain: list[Any] = []
    codes = []
    for value in values:
        code = code_of.setdefault(_identity(value), len(domain))
        if code == len(domain):
            domain.append(value)
        codes.append(code)
    return codes, domain


def _identity(value: Any) -> Any:
    """A key that is equal for equal values of equal types: 1 is neither true nor 1.0."""
    if isinstance(value, float):
        return float, value.hex()
    if isinstance(value, (list, tuple)):
        return type(value), tuple(_identity(part) for part in value)
    if isinstance(value, dict):
        return dict, frozenset((_identity(k), _identity(v)) for k, v in value.items())
    return type(value), value
