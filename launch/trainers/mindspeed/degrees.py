"""Sequence-parallel degree and algorithm -> sizes of the Ulysses and ring groups.

The words of the search are the field's: `sp_degree` ranks share a sequence, by `sp_algorithm`.
USP (Fang and Zhao, 2024) nests Ulysses groups of `ulysses_degree` in a ring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ALGORITHMS = ("ulysses", "ring", "usp")

# The same as `group_sizes`, as expressions for rules.
ULYSSES = (
    "(1 if sp_degree == 1 else sp_degree if sp_algorithm == 'ulysses' "
    "else ulysses_degree if sp_algorithm == 'usp' else 1)"
)
RING = (
    "(1 if sp_degree == 1 else sp_degree if sp_algorithm == 'ring' "
    "else sp_degree // ulysses_degree if sp_algorithm == 'usp' else 1)"
)


def group_sizes(values: Mapping[str, Any]) -> tuple[int, int]:
    """Ranks of a Ulysses group and of a ring, whose product is the SP degree."""
    degree = int(values["sp_degree"])
    if degree == 1:
        return 1, 1
    if values["sp_algorithm"] == "ulysses":
        return degree, 1
    if values["sp_algorithm"] == "ring":
        return 1, degree
    ulysses = int(values["ulysses_degree"])
    return ulysses, degree // ulysses


def degrees_of(ulysses: int, ring: int) -> dict[str, Any]:
    """The search's words for sizes that a configuration gives."""
    algorithm = "ulysses" if ring == 1 else "ring" if ulysses == 1 else "usp"
    return {
        "sp_degree": ulysses * ring,
        "sp_algorithm": algorithm,
        "ulysses_degree": ulysses,
    }
