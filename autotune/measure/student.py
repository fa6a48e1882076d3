"""Student's t distribution, as far as intervals need it."""

from __future__ import annotations

import statistics

# Quantiles for few degrees of freedom, where the series below is not good enough.
_T_975 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


def student_t_975(freedom: float) -> float:
    """The 97.5 % quantile for `freedom` degrees of freedom (at least 1), within 1e-4.

    Between whole numbers up to ten it is interpolated in 1/freedom.
    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, with the
    table 26.10 for up to ten degrees of freedom.
    """
    if freedom < 1:
        raise ValueError(f"freedom must be at least 1, got {freedom}")
    if freedom < len(_T_975):
        below = int(freedom)
        share = (1 / below - 1 / freedom) / (1 / below - 1 / (below + 1))
        return _T_975[below - 1] + share * (_T_975[below] - _T_975[below - 1])
    x = statistics.NormalDist().inv_cdf(0.975)
    g1 = (x**3 + x) / 4
    g2 = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    g3 = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + g1 / freedom + g2 / freedom**2 + g3 / freedom**3
