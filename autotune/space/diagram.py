"""A rule as a decision diagram: what its parameters still have to do for it to hold.

The parameters are read one after another. All that a rule remembers of those it has read are
the values of the largest parts of its expression that are complete: of `a * b * c <= 64`, after
`a` and `b`, only their product. Combinations that leave the same memory are one state, and from
the last parameter backward states from which the same choices lead to the same verdicts are
made one too. So a state tells at once whether the rule can still be fulfilled, and diagrams of
rules over 10^8 combinations often have some hundred states.

Source: reduced ordered decision diagrams (Bryant 1986, doi:10.1109/TC.1986.1676819), with more
than two choices a variable (Andersen, Hadzic, Hooker, Tiedemann 2007, "A constraint store based
on multivalued decision diagrams", doi:10.1007/978-3-540-74970-7_11).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.grouping import group_rows, merge_rows
from autotune.space.nodes import Growing, Leaf, Node, evaluate, nodes_below
from autotune.space.numbers import Cells

# States from which the verdict is settled, whatever follows; the others are numbered above.
HOLDS, BROKEN, FAILED = 0, 1, 2
SETTLED = 3

# Cells are combinations of a state and a choice. A block of them stays in the cache.
_BLOCK = 1 << 17
_LARGEST_LAYER = 25_000_000
_LARGEST_LAST_LAYER = 200_000_000
# A layer this large tells whether the next ones will be too large.
_TELLING_LAYER = 500_000
_MOST_IN_PYTHON = 100_000


@dataclass
class Work:
    """How many cells may still be computed."""

    cells: int

    def spend(self, cells: int) -> None:
        """Raises TooMuchWorkError when they are not there any more."""
        self.cells -= cells
        if self.cells < 0:
            raise TooMuchWorkError


class TooMuchWorkError(Exception):
    """An exact answer would take longer than a person waits for."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """start: the state before any parameter. names: the parameters in the order of reading.

    tables: for each of them, an array (states, places) of the next state; a place is the
    position of a value among the values of the parameter.
    """

    start: int
    names: tuple[str, ...] = ()
    tables: tuple[NDArray[np.int32], ...] = ()


@dataclass
class _Layer:
    """Combinations of the parameters so far that leave different memories.

    columns: for each of `nodes`, its cells, arrays (count,). apart: whether hardly any
    combinations of the last parameters left the same memory.
    """

    count: int = 1
    nodes: Sequence[Node] = ()
    columns: Sequence[Cells] = ()
    apart: bool = False


# The next states by state and place; None where each has a state of its own, in order.
_Table = NDArray[Any] | None


def make_diagram(
    root: Node, verdicts: Mapping[Any, int], leaves: Sequence[Leaf], work: Work
) -> Diagram:
    """The diagram of an expression's truth.

    verdicts: the state that each value of the root settles. leaves: the parameters of the
    space in the order of reading. Raises TooMuchWorkError.
    """
    read = [leaf for leaf in leaves if leaf.names <= root.names]
    if not read:
        known = evaluate(root, {})
        return Diagram(int(_settled(root, verdicts)[known.values]))
    tables: list[_Table] = []
    layer = _Layer()
    while len(tables) < len(read):
        rest = read[len(tables) :]
        cells = layer.count * math.prod(_places(leaf) for leaf in rest)
        if len(rest) == 1 or (layer.apart and cells <= _LARGEST_LAST_LAYER):
            _spend(cells, _LARGEST_LAST_LAYER, work)
            tables += [None] * (len(rest) - 1)
            tables.append(_last_table(layer, rest, root, verdicts))
        else:
            _spend(layer.count * _places(rest[0]), _LARGEST_LAYER, work)
            done = frozenset(name for leaf in read[: len(tables) + 1] for name in leaf.names)
            table, layer = _next_layer(layer, rest[0], _frontier(root, done))
            tables.append(table)
            _check_outlook(table.size, layer.count, rest[1:])
    start, reduced = _reduce(tables, [_places(leaf) for leaf in read])
    return Diagram(start, tuple(name for leaf in read for name in leaf.names), reduced)


def _frontier(root: Node, done: frozenset[str]) -> list[Node]:
    """The largest complete parts of the expression, once these parameters are read."""
    found: dict[Node, None] = {}

    def descend(node: Node) -> None:
        if not node.names:
            return
        if node.names <= done:
            found[node] = None
            return
        for child in node.children:
            descend(child)

    descend(root)
    return list(found)


def _places(leaf: Leaf) -> int:
    assert leaf.domain is not None
    return len(leaf.domain)


def _spend(cells: int, largest: int, work: Work) -> None:
    if cells > largest:
        raise TooMuchWorkError
    work.spend(cells)


def _check_outlook(cells: int, states: int, rest: Sequence[Leaf]) -> None:
    """Gives up early on an expression whose combinations hardly ever leave the same memory."""
    if cells < _TELLING_LAYER or states * math.prod(map(_places, rest)) <= _LARGEST_LAST_LAYER:
        return
    merged = states / cells
    if states * math.prod(_places(leaf) * merged for leaf in rest[:-1]) > _LARGEST_LAYER:
        raise TooMuchWorkError


def _blocks(
    layer: _Layer, leaves: Sequence[Leaf], wanted: Sequence[Node]
) -> Iterator[tuple[slice, list[Cells]]]:
    """The cells of the wanted nodes for every state and choices, some states at a time.

    Their shapes broadcast to (states, places of the first leaf, of the second...).
    """
    growing = [node for node in nodes_below(wanted) if isinstance(node, Growing)]
    step = max(1, _BLOCK // math.prod(map(_places, leaves)))
    own = (-1,) + (1,) * len(leaves)
    for start in range(0, layer.count, step):
        rows = slice(start, min(start + step, layer.count))
        known: dict[Node, Cells] = {}
        for number, leaf in enumerate(leaves, 1):
            places = np.arange(_places(leaf))
            known[leaf] = Cells(places.reshape((-1,) + (1,) * (len(leaves) - number)))
        for node, cells in zip(layer.nodes, layer.columns, strict=True):
            marks = None if cells.marks is None else cells.marks[rows].reshape(own)
            known[node] = Cells(cells.values[rows].reshape(own), marks)
        yield rows, [evaluate(node, known) for node in wanted]
        if sum(node.computed for node in growing) > _MOST_IN_PYTHON:
            raise TooMuchWorkError


def _next_layer(
    layer: _Layer, leaf: Leaf, frontier: Sequence[Node]
) -> tuple[NDArray[np.int32], _Layer]:
    """The table of the next states, and these states."""
    shape = (layer.count, _places(leaf))
    columns = [_empty(node, shape) for node in frontier]
    for rows, block in _blocks(layer, [leaf], frontier):
        for column, cells in zip(columns, block, strict=True):
            column.values[rows] = cells.values
            if column.marks is not None and cells.marks is not None:
                column.marks[rows] = cells.marks
                column.values[rows][column.marks[rows] != 0] = 0
    flat = [_flat(column) for column in columns]
    parts = [part for c in flat for part in (c.values, c.marks) if part is not None]
    cells_count = shape[0] * shape[1]
    groups, first = merge_rows(parts, cells_count)
    kept = [Cells(c.values[first], None if c.marks is None else c.marks[first]) for c in flat]
    apart = len(first) == cells_count > _TELLING_LAYER
    return groups.reshape(shape), _Layer(len(first), frontier, kept, apart)


def _empty(node: Node, shape: tuple[int, int]) -> Cells:
    if node.domain is not None:
        return Cells(np.empty(shape, np.int32))
    assert node.range is not None
    values = np.empty(shape, np.int64 if node.range.whole else np.float64)
    return Cells(values, np.zeros(shape, np.uint8) if node.range.marked else None)


def _flat(cells: Cells) -> Cells:
    return Cells(cells.values.ravel(), None if cells.marks is None else cells.marks.ravel())


def _settled(root: Node, verdicts: Mapping[Any, int]) -> NDArray[np.int8]:
    assert root.domain is not None
    return np.array([verdicts[value] for value in root.domain], np.int8)


def _last_table(
    layer: _Layer, leaves: Sequence[Leaf], root: Node, verdicts: Mapping[Any, int]
) -> NDArray[np.int8]:
    """The verdicts, shape (states and choices but for the last parameter, its places)."""
    shape = [_places(leaf) for leaf in leaves]
    table = np.empty((layer.count, *shape), np.int8)
    for rows, (cells,) in _blocks(layer, leaves, [root]):
        table[rows] = _settled(root, verdicts)[cells.values]
    return table.reshape(-1, shape[-1])


def _reduce(
    tables: Sequence[_Table], places: Sequence[int]
) -> tuple[int, tuple[NDArray[np.int32], ...]]:
    """The start, and the tables over states that differ in what can follow."""
    reduced = []
    state_of = np.arange(SETTLED, dtype=np.int32)
    for table, count in zip(reversed(tables), reversed(places), strict=True):
        narrow = state_of.astype(np.min_scalar_type(int(state_of.max())))
        following = narrow.reshape(-1, count) if table is None else narrow[table]
        groups, first = group_rows(list(following.T), len(following))
        distinct = following[first]
        settled = ((distinct < SETTLED) & (distinct == distinct[:, :1])).all(axis=1)
        state = np.where(settled, distinct[:, 0], 0).astype(np.int32)
        state[~settled] = np.arange(SETTLED, SETTLED + np.count_nonzero(~settled))
        state_of = state[groups]
        sinks = np.repeat(np.arange(SETTLED, dtype=np.int32)[:, None], count, axis=1)
        reduced.append(np.concatenate([sinks, distinct[~settled].astype(np.int32)]))
    return int(state_of[0]), tuple(reversed(reduced))
