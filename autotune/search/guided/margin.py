"""A function of which some values are known and of others only on which side of 0 they lie.

Peak memory is such a one: a run that fits tells its peak, one that does not may tell only that
the limit was too low. Expectation propagation in parallel (Rasmussen and Williams, Gaussian
Processes for Machine Learning, 2006, section 3.6; sites of known values stay fixed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import log_ndtr, ndtr

from autotune.search.guided.geometry import Codes, Floats
from autotune.search.guided.kernel import Kernel

_SWEEPS = 20
_DAMPING = 0.8
_SETTLED = 1e-3
_LEAST = 1e-10
_JITTER = 1e-8


@dataclass(frozen=True)
class Evidence:
    """What is known at rows of codes.

    values: (rows,), used where known. known: (rows,) of bool. sides: (rows,), 1 or -1: where
    the value is not known, on which side of 0 it lies. noise: standard deviation of a known
    value; side_noise: how far from 0 a side may be wrong.
    """

    rows: Codes
    values: Floats
    known: np.ndarray
    sides: Floats
    noise: float
    side_noise: float


@dataclass(frozen=True)
class Margin:
    """The function as the evidence leaves it. offset: its mean before any evidence, a row."""

    kernel: Kernel
    rows: Codes
    side_noise: float
    weights: Floats
    roots: Floats
    lower: Floats

    @classmethod
    def of(cls, kernel: Kernel, evidence: Evidence, offset: Floats) -> Margin:
        """offset: (rows,), the mean at the rows of the evidence before any."""
        covariance = kernel.cross(evidence.rows, evidence.rows)
        covariance[np.diag_indices_from(covariance)] += _JITTER
        precision, shift = _sites(covariance, evidence, offset)
        roots = np.sqrt(np.maximum(precision, _LEAST))
        lower = _factor(covariance, roots)
        pull = shift - precision * offset
        inner = cho_solve((lower, True), roots * (covariance @ pull))
        return cls(kernel, evidence.rows, evidence.side_noise, pull - roots * inner, roots, lower)

    def predict(self, rows: Codes, offset: Floats) -> tuple[Floats, Floats]:
        """Mean and variance (rows,) of the function; offset as in `of`."""
        cross = self.kernel.cross(rows, self.rows)
        mean = offset + cross @ self.weights
        # From here on `cross` is overwritten: copies of it are what takes time.
        cross *= self.roots
        explained = solve_triangular(
            self.lower, cross.T, lower=True, overwrite_b=True, check_finite=False
        )
        explained *= explained
        variance = self.kernel.variance(rows) - explained.sum(axis=0)
        return mean, np.maximum(variance, _LEAST)

    def above(self, rows: Codes, offset: Floats) -> Floats:
        """Probability (rows,) that the value at a row lies above 0."""
        mean, variance = self.predict(rows, offset)
        return np.asarray(ndtr(mean / np.sqrt(variance + self.side_noise**2)))


def _factor(covariance: Floats, roots: Floats) -> Floats:
    inner = np.eye(len(roots)) + roots[:, None] * covariance * roots[None, :]
    return np.asarray(np.linalg.cholesky(inner))


def _sites(covariance: Floats, evidence: Evidence, offset: Floats) -> tuple[Floats, Floats]:
    """Precision, and precision times mean, of the Gaussian that stands in for each piece."""
    known, sides = evidence.known, evidence.sides[~evidence.known]
    precision = np.where(known, 1 / evidence.noise**2, 0.0)
    shift = precision * np.where(known, evidence.values, 0.0)
    if not len(sides):
        return precision, shift
    for _ in range(_SWEEPS):
        roots = np.sqrt(np.maximum(precision, _LEAST))
        explained = solve_triangular(
            _factor(covariance, roots), roots[:, None] * covariance, lower=True
        )
        variance = np.diag(covariance) - (explained * explained).sum(axis=0)
        pull = shift - precision * offset
        mean = offset + covariance @ pull - explained.T @ (explained @ pull)
        new_precision, new_shift = _moments(
            mean[~known], variance[~known], precision[~known], shift[~known], sides, evidence
        )
        before = precision[~known].copy()
        precision[~known] += _DAMPING * (new_precision - precision[~known])
        shift[~known] += _DAMPING * (new_shift - shift[~known])
        if np.abs(precision[~known] - before).max() < _SETTLED * (1 + before.max()):
            break
    return precision, shift


def _moments(
    mean: Floats,
    variance: Floats,
    precision: Floats,
    shift: Floats,
    sides: Floats,
    evidence: Evidence,
) -> tuple[Floats, Floats]:
    """The Gaussian stand-ins that match the moments of the sides (equations 3.58, 3.59)."""
    variance = np.maximum(variance, _LEAST)
    cavity_precision = np.maximum(1 / variance - precision, _LEAST)
    cavity_variance = 1 / cavity_precision
    cavity_mean = (mean / variance - shift) * cavity_variance
    width2 = evidence.side_noise**2 + cavity_variance
    reach = sides * cavity_mean / np.sqrt(width2)
    ratio = np.exp(-0.5 * reach**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(reach))
    new_mean = cavity_mean + sides * cavity_variance * ratio / np.sqrt(width2)
    new_variance = cavity_variance - cavity_variance**2 * ratio * (reach + ratio) / width2
    new_variance = np.maximum(new_variance, _LEAST)
    new_precision = np.maximum(1 / new_variance - cavity_precision, _LEAST)
    return new_precision, new_mean / new_variance - cavity_mean * cavity_precision
