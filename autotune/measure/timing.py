"""Step times -> the time of one global batch, with its interval.

The data window is a fixed sequence of global batches, and batches differ in length, so a
step is compared only with the steps at the same place in the window: the estimate is the
mean over the window of each place's mean, and its error comes from the spread within
places (stratified sampling; Cochran, Sampling Techniques, 5.3-5.4).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchTime:
    """Seconds for one global batch. ci95_s is None when the run was too short to give one."""

    mean_s: float
    ci95_s: tuple[float, float] | None
    steps: int


def estimate_batch_time(times_s: Sequence[float], window_steps: int = 1) -> BatchTime:
    """The mean time over the data window and its 95 % interval.

    times_s: scored steps in order, the first at place 0 of the window. window_steps: number
    of global batches in the window; steps of a pass that was not finished are left out.
    Raises ValueError for an empty sequence or fewer steps than one window.
    """
    passes = len(times_s) // window_steps
    if passes < 1:
        raise ValueError(f"{len(times_s)} steps are less than the data window of {window_steps}")
    times = times_s[: passes * window_steps]
    mean = statistics.fmean(times)
    freedom = len(times) - window_steps
    if freedom < 1:
        return BatchTime(mean, None, len(times))
    residual = 0.0
    for place in range(window_steps):
        here = times[place::window_steps]
        centre = statistics.fmean(here)
        residual += sum((time - centre) ** 2 for time in here)
    error = math.sqrt(residual / freedom / len(times))
    half = student_t_975(freedom) * error
    return BatchTime(mean, (max(mean - half, 0.0), mean + half), len(times))


# Quantiles for few degrees of freedom, where the series below is not good enough.
_T_975 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


def student_t_975(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution, within 1e-4.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, with the
    table 26.10 for up to ten degrees of freedom.
    """
    if freedom < 1:
        raise ValueError(f"freedom must be at least 1, got {freedom}")
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    x = statistics.NormalDist().inv_cdf(0.975)
    g1 = (x**3 + x) / 4
    g2 = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    g3 = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + g1 / freedom + g2 / freedom**2 + g3 / freedom**3


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the baseline, from two independent estimates."""

    ratio: float
    ci95: tuple[float, float] | None


def speedup(baseline: BatchTime, candidate: BatchTime) -> Speedup:
    """Baseline over candidate, with a 95 % interval (delta method on the logarithm)."""
    ratio = baseline.mean_s / candidate.mean_s
    if baseline.ci95_s is None or candidate.ci95_s is None:
        return Speedup(ratio, None)
    relative = [(t.ci95_s[1] - t.mean_s) / t.mean_s for t in (baseline, candidate) if t.ci95_s]
    half = math.hypot(*relative)
    return Speedup(ratio, (ratio * math.exp(-half), ratio * math.exp(half)))
