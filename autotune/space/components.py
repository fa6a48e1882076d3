"""A space's conditions and rules, as what is followed while its parameters are decided."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UserError
from autotune.space.definition import Parameter, SpaceDefinition
from autotune.space.diagram import (
    BROKEN,
    FAILED,
    HOLDS,
    SETTLED,
    Diagram,
    TooMuchWorkError,
    Work,
    make_diagram,
)
from autotune.space.expression import Expression
from autotune.space.nodes import Growing, Leaf, Node, evaluate, nodes_below
from autotune.space.numbers import Cells
from autotune.space.operators import Mark
from autotune.space.order import deciding_order
from autotune.space.vectorise import Vectoriser

# What an expression that is needed but inapplicable means: a rule holds, a condition does not.
_RULE = {True: HOLDS, Mark.INAPPLICABLE: HOLDS, False: BROKEN, Mark.FAILED: FAILED}
_CONDITION = {True: HOLDS, Mark.INAPPLICABLE: BROKEN, False: BROKEN, Mark.FAILED: FAILED}

# For all diagrams of a space together: some seconds.
_DIAGRAM_CELLS = 400_000_000
_WORD = 64


@dataclass(frozen=True, eq=False)
class Axis:
    """One parameter in the order of deciding.

    column: its position in the space. condition: which condition says whether it is active.
    places: how many values it may have; with a condition, place 0 is to have none.
    """

    parameter: Parameter
    column: int
    condition: int | None

    @property
    def offset(self) -> int:
        """The place of the first choice."""
        return 0 if self.condition is None else 1

    @property
    def places(self) -> int:
        """The number of values, none included."""
        return len(self.parameter.choices) + self.offset

    @cached_property
    def active(self) -> NDArray[np.uint64]:
        """The places that are open while the condition holds and while it does not, as bits."""
        bits = np.ones((2, self.places), bool)
        if self.condition is not None:
            bits[HOLDS, 0] = False
            bits[BROKEN, 1:] = False
        return as_words(bits)


@dataclass(frozen=True, eq=False)
class Component:
    """A condition or a rule as it is followed: a state, and the next one for every place.

    tables: by layer, an array (states, places). last: the layer after which it is settled,
    -1 where it reads no parameter. A rule whose diagram would be too large has no tables: it
    stays in the state `SETTLED` and is evaluated at its last layer.
    """

    start: int
    tables: Mapping[int, NDArray[np.int32]]
    last: int
    evaluated: Evaluated | None = None

    @cached_property
    def allowed(self) -> Mapping[int, NDArray[np.uint64]]:
        """By layer and state, the places that do not break the rule, as bits.

        A rule that is broken already breaks no further.
        """
        words = {}
        for layer, table in self.tables.items():
            bits = table != BROKEN
            bits[BROKEN] = True
            words[layer] = as_words(bits)
        return words


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A rule that is evaluated where all it reads is decided.

    layers: where that is, by leaf.
    """

    root: Node
    layers: Mapping[Leaf, int]

    @cached_property
    def in_python(self) -> bool:
        """Whether some of it is computed without numpy, which takes far longer."""
        return any(isinstance(node, Growing) for node in nodes_below([self.root]))

    def verdicts(self, places: Mapping[int, NDArray[Any]]) -> NDArray[np.int32]:
        """The state that every row settles, from its places by layer, arrays (rows,)."""
        known: dict[Node, Cells] = {
            leaf: Cells(places[layer]) for leaf, layer in self.layers.items()
        }
        codes = evaluate(self.root, known).values
        assert self.root.domain is not None
        return np.array([_RULE[value] for value in self.root.domain], np.int32).take(codes)


@dataclass(frozen=True, eq=False)
class Components:
    """All of a space: its axes in the order of deciding, its conditions and its rules."""

    axes: tuple[Axis, ...]
    conditions: tuple[Component, ...]
    rules: tuple[Component, ...]

    @classmethod
    def of(cls, definition: SpaceDefinition) -> Components:
        """Makes the diagrams. Raises UserError for a condition of too many combinations."""
        parameters = definition.parameters
        order = deciding_order(parameters, definition.rules)
        conditions = {_same(p.when): p for p in parameters if p.when is not None}
        numbers = {key: number for number, key in enumerate(conditions)}
        axes = [Axis(parameters[n], n, numbers.get(_same(parameters[n].when))) for n in order]
        maker = _Maker(axes, definition)
        return cls(
            tuple(axes),
            tuple(maker.condition(parameter) for parameter in conditions.values()),
            maker.rules([rule.expression for rule in definition.rules]),
        )

    @property
    def combinations(self) -> int:
        """An upper bound on the number of combinations."""
        return math.prod(axis.places for axis in self.axes)


class _Maker:
    def __init__(self, axes: Sequence[Axis], definition: SpaceDefinition) -> None:
        self.leaves = [
            Leaf(axis.parameter.name, (None,) * axis.offset + axis.parameter.choices)
            for axis in axes
        ]
        self.layer_of = {axis.parameter.name: layer for layer, axis in enumerate(axes)}
        by_name = {axis.parameter.name: leaf for axis, leaf in zip(axes, self.leaves, strict=True)}
        self.nodes = Vectoriser(by_name, definition.facts)
        self.work = Work(_DIAGRAM_CELLS)

    def condition(self, parameter: Parameter) -> Component:
        assert parameter.when is not None
        root = self.nodes.truth(parameter.when.tree)
        try:
            return self._component(make_diagram(root, _CONDITION, self.leaves, self.work))
        except TooMuchWorkError:
            raise UserError(
                f"space.parameters.{parameter.name}.when: {parameter.when.text!r} depends on too "
                "many combinations of values; let it read fewer parameters"
            ) from None

    def rules(self, expressions: Sequence[Expression]) -> tuple[Component, ...]:
        """Small ones first, so that large ones cannot use up the work that they need."""
        made: dict[int, Component] = {}
        for number in sorted(range(len(expressions)), key=lambda n: self._size(expressions[n])):
            made[number] = self._rule(expressions[number])
        return tuple(made[number] for number in range(len(expressions)))

    def _size(self, expression: Expression) -> int:
        read = [leaf for leaf in self.leaves if leaf.names <= expression.names]
        return math.prod(len(leaf.domain or ()) for leaf in read)

    def _rule(self, expression: Expression) -> Component:
        root = self.nodes.truth(expression.tree)
        try:
            return self._component(make_diagram(root, _RULE, self.leaves, self.work))
        except TooMuchWorkError:
            layers = {
                leaf: layer
                for layer, leaf in enumerate(self.leaves)
                if leaf.names <= expression.names
            }
            return Component(SETTLED, {}, max(layers.values()), Evaluated(root, layers))

    def _component(self, diagram: Diagram) -> Component:
        layers = [self.layer_of[name] for name in diagram.names]
        tables = dict(zip(layers, diagram.tables, strict=True))
        return Component(diagram.start, tables, max(layers, default=-1))


def as_words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of bits as rows of 64-bit words, shape (rows, words)."""
    padding = -bits.shape[1] % _WORD
    padded = np.pad(bits, ((0, 0), (0, padding)))
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def as_bits(words: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """The first `count` bits of each row."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=count, bitorder="little").view(bool)


def _same(expression: Expression | None) -> str | None:
    """Equal for conditions that say the same."""
    return None if expression is None else ast.dump(expression.tree)
