"""How far apart two choices of a parameter are, and which way an ordered one goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.space.definition import Parameter

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]


@dataclass(frozen=True)
class Geometry:
    """Tables over the choices of each parameter; index 0 stands for "inactive".

    columns: (parameters,), the columns of codes that are looked at: those with a choice.
    distances: (choices + 1, choices + 1) a parameter, from 0 to 1. Ordered choices are as far
    apart as their ranks, others as different as can be; an inactive parameter is like itself
    and lies beside the ordered ones, as the third corner of a triangle.
    slopes: covariance of a straight line over the ranks of ordered choices, and of independent
    levels that sum to zero over unordered ones; an inactive parameter adds nothing.
    ranks: (choices + 1,) a parameter, from -1 at the first choice to 1 at the last one.
    """

    columns: tuple[int, ...]
    distances: tuple[Floats, ...]
    slopes: tuple[Floats, ...]
    ranks: tuple[Floats, ...]

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> Geometry:
        """The tables of the parameters that vary: with two choices, or active at times only."""
        columns = [n for n, p in enumerate(parameters) if len(p.choices) > 1 or p.when is not None]
        varied = [parameters[n] for n in columns or range(len(parameters))]
        ranks = tuple(_ranks(len(parameter.choices)) for parameter in varied)
        pairs = list(zip(varied, ranks, strict=True))
        return cls(
            columns=tuple(columns or range(len(parameters))),
            distances=tuple(_distances(parameter, rank) for parameter, rank in pairs),
            slopes=tuple(_slopes(parameter, rank) for parameter, rank in pairs),
            ranks=ranks,
        )

    @property
    def parameters(self) -> int:
        """How many parameters there are."""
        return len(self.distances)

    def positions(self, rows: Codes) -> np.ndarray:
        """Indices (rows, parameters) into the tables."""
        return np.asarray(rows[:, list(self.columns)] + 1)


def _ranks(choices: int) -> Floats:
    ranks = np.zeros(choices + 1)
    if choices > 1:
        ranks[1:] = 2 * np.arange(choices) / (choices - 1) - 1
    return ranks


def _distances(parameter: Parameter, ranks: Floats) -> Floats:
    table = 1.0 - np.eye(len(ranks))
    if parameter.ordered and len(parameter.choices) > 1:
        table[1:, 1:] = np.abs(ranks[1:, None] - ranks[None, 1:]) / 2
        # Beside the line, as far from its ends as they are from each other. Were it as far from
        # its middle, no room would hold these distances and covariances could be negative.
        table[0, 1:] = table[1:, 0] = np.sqrt(ranks[1:] ** 2 / 4 + 3 / 4)
    return table


def _slopes(parameter: Parameter, ranks: Floats) -> Floats:
    choices = len(ranks) - 1
    table = np.zeros((choices + 1, choices + 1))
    if choices < 2:
        return table
    if parameter.ordered:
        table[:] = np.outer(ranks, ranks)
    else:  # the same variance of 1 a level, whatever the number of levels
        table[1:, 1:] = (np.eye(choices) - 1 / choices) * choices / (choices - 1)
    return table
