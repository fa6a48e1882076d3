"""The kernel that explains measured values best: maximum a posteriori, by its gradient.

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs
from scipy.optimize import minimize

from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.kernel import (
    Amplitudes,
    Kernel,
    matern52,
    matern52_by_log_length,
    pairs,
)

_JITTER = 1e-8
_ITERATIONS = 15
# In standard deviations of the prior: how far a value may go from what is expected.
_FARTHEST = 3.0


@dataclass(frozen=True)
class KernelPrior:
    """What kernels are expected to be before anything was measured.

    length: median of the lengths; amplitudes: medians, of which constant and slope stay as
    they are; noise: median standard deviation of one measurement. The rest are standard
    deviations of the logarithms.
    """

    length: float
    amplitudes: Amplitudes
    noise: float
    length_spread: float = 1.0
    amplitude_spread: float = 0.7
    noise_spread: float = 1.0

    def kernel(self, geometry: Geometry) -> Kernel:
        """The kernel at the medians."""
        return Kernel(geometry, np.full(geometry.parameters, self.length), self.amplitudes)


@dataclass(frozen=True)
class Fitted:
    """A kernel, and the noise of one measurement as a standard deviation.

    loss: minus the logarithm of its posterior, up to a constant.
    """

    kernel: Kernel
    noise: float
    loss: float = 0.0


def fit_kernel(
    geometry: Geometry, rows: Codes, values: Floats, noise_scale: Floats, prior: KernelPrior
) -> Fitted:
    """The most probable kernel for values (rows,) with mean 0.

    noise_scale: (rows,), how many times as large as usual a value's noise variance is.
    """
    size, count = prior.amplitudes, geometry.parameters
    middle = np.log(
        np.concatenate(
            [np.full(count, prior.length), [size.main, size.pair, size.joint, prior.noise]]
        )
    )
    spread = np.concatenate(
        [
            np.full(count, prior.length_spread),
            np.full(3, prior.amplitude_spread),
            [prior.noise_spread],
        ]
    )
    evidence = _Evidence(geometry, rows, values, noise_scale, prior, middle, spread)
    reach = _FARTHEST * spread
    result = minimize(
        evidence,
        middle,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(middle - reach, middle + reach, strict=True)),
        options={"maxiter": _ITERATIONS},
    )
    found = result.x
    main, pair, joint, noise = (float(value) for value in np.exp(found[count:]))
    amplitudes = Amplitudes(size.constant, size.slope, main, pair, joint)
    return Fitted(Kernel(geometry, np.exp(found[:count]), amplitudes), noise, float(result.fun))


class _Evidence:
    """Minus the logarithm of the posterior of a kernel, and its gradient."""

    def __init__(
        self,
        geometry: Geometry,
        rows: Codes,
        values: Floats,
        noise_scale: Floats,
        prior: KernelPrior,
        middle: Floats,
        spread: Floats,
    ) -> None:
        self.values, self.noise_scale = values, noise_scale
        self.middle, self.spread = middle, spread
        here = geometry.positions(rows)
        self.distances, self.pick = _used(geometry.distances, here)
        line = np.zeros((len(rows), len(rows)))
        for number, slopes in enumerate(geometry.slopes):
            line += slopes[np.ix_(here[:, number], here[:, number])]
        size = prior.amplitudes
        self.fixed = size.constant**2 + size.slope**2 * line

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        count = len(self.distances)
        scaled = self.distances / np.exp(point[:count])[:, None, None]
        alike = matern52(scaled).ravel()[self.pick]
        change = matern52_by_log_length(scaled).ravel()[self.pick]
        main, pair, joint, noise = np.exp(2 * point[count:])
        total, product = alike.sum(axis=0), alike.prod(axis=0)
        both = (total * total - (alike * alike).sum(axis=0)) / 2
        covariance = self.fixed + main * total / count + pair * both / pairs(count)
        covariance += joint * product
        covariance[np.diag_indices_from(covariance)] += noise * self.noise_scale + _JITTER
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(point)
        weights, _ = dpotrs(lower, self.values, lower=1)
        inverse, _ = dpotrs(lower, np.eye(len(self.values)), lower=1)
        loss = 0.5 * self.values @ weights + np.log(np.diag(lower)).sum()
        pull = 0.5 * (inverse - np.outer(weights, weights))
        gradient = np.empty_like(point)
        rest = product / np.where(alike > 1e-12, alike, np.inf)
        by_alike = main / count + pair / pairs(count) * (total - alike) + joint * rest
        gradient[:count] = (pull * change * by_alike).sum(axis=(1, 2))
        gradient[count] = (pull * total).sum() * 2 * main / count
        gradient[count + 1] = (pull * both).sum() * 2 * pair / pairs(count)
        gradient[count + 2] = (pull * product).sum() * 2 * joint
        gradient[count + 3] = (np.diag(pull) * self.noise_scale).sum() * 2 * noise
        away = (point - self.middle) / self.spread
        return float(loss + 0.5 * away @ away), gradient + away / self.spread


def _used(tables: Sequence[Floats], here: np.ndarray) -> tuple[Floats, np.ndarray]:
    """The choices that occur, for few of which something is to be worked out.

    The distances between them (parameters, choices, choices), filled up with 0, and indices
    (parameters, rows, rows) into these, flattened, for each pair of rows.
    """
    levels = [np.unique(column, return_inverse=True) for column in here.T]
    most = max(len(choices) for choices, _ in levels)
    distances = np.zeros((len(tables), most, most))
    picks = []
    for number, (table, (choices, place)) in enumerate(zip(tables, levels, strict=True)):
        distances[number, : len(choices), : len(choices)] = table[np.ix_(choices, choices)]
        picks.append((number * most + place[:, None]) * most + place[None, :])
    return distances, np.stack(picks)
