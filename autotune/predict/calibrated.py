"""Weights of a cost model's terms, learnt from runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Degrees of freedom of Student's t, which lets single disturbed runs count for little.
_FREEDOM = 4.0
_ITERATIONS = 100
_LONGEST_STEP = 1.0
_CONVERGED = 1e-9


@dataclass(frozen=True)
class CalibratedModel:
    """A value as a weighted sum of terms.

    weights: one a term, above 0; they include the scale of the whole.
    """

    weights: Floats

    @classmethod
    def fit(
        cls,
        terms: ArrayLike,
        measured: ArrayLike,
        prior: ArrayLike | None = None,
        noise: float = 0.1,
        trust: float = 1.0,
    ) -> CalibratedModel:
        """The most probable weights, where errors of the logarithm are Student-t.

        terms: (runs, terms), at least 0. measured: (runs,), above 0, in any unit. prior: the
        weights that are expected up to a common factor, 1 each by default. noise: relative
        error of a run and of the model. trust: by how many e-folds a weight may well be off.
        Without runs the weights are `prior`; with few they stay near it, up to the factor.
        """
        rows, values = _checked(terms, measured)
        weights = np.ones(rows.shape[1]) if prior is None else np.asarray(prior, dtype=float)
        if weights.shape != rows.shape[1:] or (weights <= 0).any():
            raise ValueError(f"prior must be {rows.shape[1]} weights above 0, got {weights}")
        if len(rows) == 0:
            return cls(weights)
        return cls(_fit(rows, np.log(values), weights, noise, trust))

    def predict(self, terms: ArrayLike) -> Floats:
        """Logarithms of the values of rows of terms, (rows,)."""
        values: Floats = np.log(np.asarray(terms, dtype=float) @ self.weights)
        return values


def _checked(terms: ArrayLike, measured: ArrayLike) -> tuple[Floats, Floats]:
    rows = np.asarray(terms, dtype=float)
    values = np.asarray(measured, dtype=float)
    if rows.ndim != 2 or values.shape != rows.shape[:1]:
        raise ValueError(f"terms {rows.shape} and measured {values.shape} do not match")
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.sum(axis=1) > 0).all()):
        raise ValueError("terms must be finite, at least 0, and not all 0 in a row")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("measured values must be finite and above 0")
    return rows, values


def _fit(rows: Floats, logs: Floats, prior: Floats, noise: float, trust: float) -> Floats:
    """Weights scale * prior * exp(steps), with steps normal around 0 and any scale.

    Damped Gauss-Newton on the logarithm; t errors by reweighting (Lange et al. 1989).
    """
    count = len(prior)
    penalty = np.diag([0.0] + [1 / trust**2] * count)
    state = np.zeros(count + 1)  # log of the scale, then of each weight over it
    state[0] = np.median(logs - np.log(rows @ prior))
    for _ in range(_ITERATIONS):
        weighted = rows * (prior * np.exp(state[0] + state[1:]))
        total = weighted.sum(axis=1)
        errors = (logs - np.log(total)) / noise
        slopes = np.column_stack([np.ones(len(rows)), weighted / total[:, None]]) / noise
        trusted = (_FREEDOM + 1) / (_FREEDOM + errors**2)
        normal = (slopes * trusted[:, None]).T @ slopes + penalty
        step = np.linalg.solve(normal, slopes.T @ (trusted * errors) - penalty @ state)
        size = float(np.abs(step).max())
        state += step * min(1.0, _LONGEST_STEP / max(size, _CONVERGED))
        if size < _CONVERGED:
            break
    fitted: Floats = prior * np.exp(state[0] + state[1:])
    return fitted


def prior_weights(names: Sequence[str], known: dict[str, float]) -> Floats:
    """One weight a term: the known ones, 1 for the rest."""
    return np.array([known.get(name, 1.0) for name in names])
