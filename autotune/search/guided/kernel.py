"""How alike two points are: by one parameter, by pairs of them, and by all at once.

An additive Gaussian process (Duvenaud, Nickisch and Rasmussen, Additive Gaussian Processes,
2011): what one parameter does is learned from few runs, what pairs of them do from some more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.geometry import Codes, Floats, Geometry

_ROOT5 = np.sqrt(5.0)


@dataclass(frozen=True)
class Amplitudes:
    """Standard deviations of the parts of a function, in the unit of the function.

    constant: of its level. slope: of a straight line over a parameter's ranks, end against
    middle. main: of what single parameters do. pair: of pairs. joint: of all together.
    """

    constant: float
    slope: float
    main: float
    pair: float
    joint: float


@dataclass(frozen=True)
class Kernel:
    """Covariance of a function over points. Rows of codes are as in `LegalSpace.codes`.

    lengths: (parameters,), the distance over which a parameter's choices are alike.
    """

    geometry: Geometry
    lengths: Floats
    amplitudes: Amplitudes

    def cross(self, left: Codes, right: Codes) -> Floats:
        """Covariance (left, right) of the function at the rows of two arrays."""
        shape = (len(left), len(right))
        here, there = self.geometry.positions(left), self.geometry.positions(right)
        total, squares, product = np.zeros(shape), np.zeros(shape), np.ones(shape)
        line, alike = np.zeros(shape), np.empty(shape)
        for number, (distance, length) in enumerate(
            zip(self.geometry.distances, self.lengths, strict=True)
        ):
            # Whole rows are copied, one for each choice there is: rows are many, choices few.
            levels = matern52(distance / length)[:, there[:, number]]
            np.take(levels, here[:, number], axis=0, out=alike, mode="clip")
            total += alike
            product *= alike
            alike *= alike
            squares += alike
            if self.amplitudes.slope:
                line += self.geometry.slopes[number][:, there[:, number]][here[:, number]]
        return self._sum(total, squares, product, line)

    def variance(self, rows: Codes) -> Floats:
        """Variance (rows,) of the function at the rows."""
        count = self.geometry.parameters
        line = np.zeros(len(rows))
        if self.amplitudes.slope:
            here = self.geometry.positions(rows)
            for number, slopes in enumerate(self.geometry.slopes):
                line += np.diag(slopes)[here[:, number]]
        ones = np.ones(len(rows))
        return self._sum(count * ones, count * ones, ones, line)

    def _sum(self, total: Floats, squares: Floats, product: Floats, line: Floats) -> Floats:
        size = self.amplitudes
        covariance = (
            size.constant**2
            + size.main**2 * total / self.geometry.parameters
            + size.pair**2 * (total * total - squares) / 2 / pairs(self.geometry.parameters)
            + size.joint**2 * product
        )
        return covariance + size.slope**2 * line


def matern52(distance: Floats) -> Floats:
    """Matern covariance with smoothness 5/2 of unit amplitude and length."""
    return np.asarray((1 + _ROOT5 * distance + 5 / 3 * distance**2) * np.exp(-_ROOT5 * distance))


def matern52_by_log_length(distance: Floats) -> Floats:
    """Its derivative by the logarithm of the length; distance is over the length."""
    return np.asarray(5 / 3 * distance**2 * (1 + _ROOT5 * distance) * np.exp(-_ROOT5 * distance))


def pairs(parameters: int) -> float:
    """How many pairs of parameters there are, at least 1."""
    return max(parameters * (parameters - 1) / 2, 1.0)
