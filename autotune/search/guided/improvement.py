"""Expected improvement of a normal prediction (Jones, Schonlau and Welch, 1998)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from autotune.search.guided.geometry import Floats

_FAR = -6.0


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Logarithm of the expected amount by which a value lies below `best`, elementwise.

    Stays finite and ordered far beyond where the amount itself rounds to zero.
    """
    reach = (best - mean) / deviation
    density = np.exp(-0.5 * reach**2) / np.sqrt(2 * np.pi)
    near = np.log(np.maximum(density + reach * ndtr(reach), 1e-300))
    # Mills' ratio: density + reach * tail is a little more than density / (reach^2 + 3) for a
    # large -reach, so that nothing far counts more than what is near.
    far = -0.5 * reach**2 - 0.5 * np.log(2 * np.pi) - np.log(reach**2 + 3)
    return np.asarray(np.where(reach > _FAR, near, far) + np.log(deviation))
