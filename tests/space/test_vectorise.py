"""Expressions computed over all combinations at once mean what one evaluation means."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.space.expression import Expression, InapplicableError
from autotune.space.nodes import Growing, Leaf, Native, evaluate, nodes_below
from autotune.space.numbers import Cells
from autotune.space.operators import Mark
from autotune.space.vectorise import Vectoriser

FACTS: dict[str, dict[str, Any]] = {
    "model": {"heads": 6, "sizes": [1, 2.0, "ring"], "none": None},
    "cluster": {"share": 0.5},
}
NAMES = ["a", "b", "c", "d"]
NUMBERS: list[Any] = [0, 1, -3, 7, 64, 2**40, 2**53 + 1, 2**62, 0.5, -0.0, 1e300, True, None]
CHOICES: list[Any] = [*NUMBERS, False, "ring", "1", "%d", "", [1, 2], [], {"x": 1}, float("inf")]


def _expressions() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(
        [
            *(*NAMES, *NAMES, "0", "1", "2", "3.5", "'ring'", "null", "true"),
            *("[1, 2]", "[1, 7, 0.5]", "model.heads", "model.sizes", "model.none", "cluster.share"),
        ]
    )

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.sampled_from(
            ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", "in", "not in", "and"]
        )
        return st.one_of(
            st.tuples(inner, binary, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} and {t[1]} and {t[2]})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} or {t[1]} or {t[2]})"),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
            st.tuples(st.sampled_from(["-", "+", "not "]), inner).map(lambda t: f"({t[0]}{t[1]})"),
            st.tuples(st.sampled_from(["abs", "len", "max", "min"]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
            st.tuples(st.sampled_from(["max", "min"]), inner, inner, inner).map(
                lambda t: f"{t[0]}({t[1]}, {t[2]}, {t[3]})"
            ),
            st.tuples(inner, inner).map(lambda t: f"[{t[0]}, {t[1]}]"),
        )

    return st.recursive(atoms, larger, max_leaves=8)


def by_python(expression: Expression, scope: dict[str, Any]) -> Any:
    try:
        return bool(expression.evaluate({**FACTS, **scope}))
    except InapplicableError:
        return Mark.INAPPLICABLE
    except UserError:
        return Mark.FAILED


def at_once(expression: Expression, domains: dict[str, list[Any]], table: int) -> list[Any]:
    """The truth of every combination, in the order of `itertools.product`."""
    leaves = {name: Leaf(name, domain) for name, domain in domains.items()}
    node = Vectoriser(leaves, FACTS, table).truth(expression.tree)
    grids = np.meshgrid(*(np.arange(len(d)) for d in domains.values()), indexing="ij")
    known = {leaf: Cells(grid) for leaf, grid in zip(leaves.values(), grids, strict=True)}
    codes = np.broadcast_to(evaluate(node, dict(known)).values, grids[0].shape).ravel()
    assert node.domain is not None
    return [node.domain[code] for code in codes.tolist()]


def agree(text: str, domains: dict[str, list[Any]], table: int) -> None:
    expression = Expression.parse(text, "here")
    expected = [
        by_python(expression, dict(zip(domains, values, strict=True)))
        for values in itertools.product(*domains.values())
    ]
    assert at_once(expression, domains, table) == expected


@settings(max_examples=300, deadline=None)
@given(
    _expressions(),
    st.lists(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=4), min_size=4, max_size=4),
    st.sampled_from([1, 4, 1024]),
)
def test_any_expression_over_any_values(text: str, choices: list[list[Any]], table: int) -> None:
    """table: small ones leave the work to numpy and to the growing domains."""
    agree(text, dict(zip(NAMES, choices, strict=True)), table)


@settings(max_examples=300, deadline=None)
@given(
    _expressions(),
    st.lists(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=4), min_size=4, max_size=4),
)
def test_any_expression_over_numbers(text: str, choices: list[list[Any]]) -> None:
    agree(text, dict(zip(NAMES, choices, strict=True)), table=1)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["+", "-", "*", "/", "//", "%"]),
    st.sampled_from(["<", "<=", "==", "!="]),
    st.lists(
        st.lists(st.floats() | st.integers(-9, 9), min_size=3, max_size=3), min_size=4, max_size=4
    ),
)
def test_numbers_are_pythons(sign: str, order: str, choices: list[list[Any]]) -> None:
    agree(f"a {sign} b {order} c", dict(zip(NAMES, choices, strict=True)), table=1)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(NUMBERS[:8]), min_size=1, max_size=4, unique=True),
    st.integers(0, 5),
)
def test_powers_are_pythons(choices: list[Any], exponent: int) -> None:
    domains = dict.fromkeys(NAMES, choices)
    agree(f"(a + b) ** {exponent} > c * d", domains, table=1)


@pytest.mark.parametrize(
    "text",
    [
        *("a == b", "a != b", "a < b", "a >= b", "a < 1 % b", "1 % a < b", "1 % a == b"),
        *("b in [1, null, 0.5, 'x']", "b not in [0, null]", "a * b in [-3, 1]", "1 % b in [0]"),
        *("a + b == c", "a - b < c", "a * b != c", "a / b <= c", "a // b == c % b"),
        *("(a if b else c) == 1", "(a if 1 % b else c) < 1", "(a == b) == (c < b)", "not a"),
        *("max(a, b) > c", "min(a, 1 % b, c) < 1", "max(1 % a, b) == b", "-a < b", "abs(a) == -b"),
        *(
            "a and b or c",
            "1 % a == 0 or b == 0",
            "a * a * b > 4 * c",
            "'%s' % (a * 1.0) == '-0.0'",
        ),
    ],
)
def test_numbers_null_and_failures(text: str) -> None:
    """Where none, zero and what a float cannot hold meet, for each operation on its own."""
    values = [0, 1, None, -3, 0.5, 2**53 + 1, 2.0**53, -0.0, True]
    agree(text, dict.fromkeys("abc", values), table=1)
    whole = [0, 1, None, -3, 2**53 + 1, 2**61]
    agree(text, dict.fromkeys("abc", whole), table=1)
    agree(text, {"a": [2.0**53, 1.5], "b": [2**53 + 1, 0], "c": [None, 1]}, table=1)


def test_numbers_of_large_domains_are_left_to_numpy() -> None:
    """What the tests above cover: not Python's loop for all of them."""
    leaves = {name: Leaf(name, list(range(50))) for name in NAMES}
    tree = Expression.parse("max(a * b + c * d, 7) % 64 in [1, 2] or -a < abs(b - c)", "here").tree
    root = Vectoriser(leaves, FACTS).truth(tree)
    kinds = {type(node) for node in nodes_below([root])}
    assert Native in kinds
    assert Growing not in kinds
