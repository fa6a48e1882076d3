"""What measured values say about points that were not measured: Gaussian process regression.

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from autotune.search.guided.geometry import Codes, Floats
from autotune.search.guided.kernel import Kernel

_JITTER = 1e-8
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Regression:
    """A function known at some rows with noise.

    lower: Cholesky factor of the covariance of the measurements. weights: that covariance's
    inverse times the values.
    """

    kernel: Kernel
    rows: Codes
    lower: Floats
    weights: Floats

    @classmethod
    def of(cls, kernel: Kernel, rows: Codes, values: Floats, noise: Floats) -> Regression:
        """From values (rows,) with mean 0 and their noise variances (rows,)."""
        covariance = kernel.cross(rows, rows) + np.diag(noise + _JITTER)
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        return cls(kernel, rows, lower, cho_solve((lower, True), values))

    def predict(self, rows: Codes) -> tuple[Floats, Floats]:
        """Mean and variance (rows,) of the function itself, without noise."""
        cross = self.kernel.cross(rows, self.rows)
        mean = cross @ self.weights
        # From here on `cross` is overwritten: copies of it are what takes time.
        explained = solve_triangular(
            self.lower, cross.T, lower=True, overwrite_b=True, check_finite=False
        )
        explained *= explained
        variance = self.kernel.variance(rows) - explained.sum(axis=0)
        return mean, np.maximum(variance, _LEAST_VARIANCE)

    def left_out(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and variance (rows,) of each measurement, as the others predict it."""
        inverse = cho_solve((self.lower, True), np.eye(len(values)))
        variance = 1 / np.diag(inverse)
        return values - self.weights * variance, variance
