"""How much separate runs of one point differ.

A run has its own memory layout, its own placement of processes, its own minute of a shared
machine: two runs of one point differ by more than their steps do. An interval for the
point's time holds what it says only when it includes that spread. It cannot be seen in one
run; it is learned from points that ran more than once, starting from an assumption.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.measure.student import student_t_975
from autotune.measure.timing import RunEstimate

_ASSUMED_FREEDOM = 4.0
# Beyond this, a run that differs was disturbed; it says nothing of the usual spread.
_MOST_SPREADS = 4.0
_LEAST_CUT = 0.02
# Neighbouring differences share a run, so each is worth two thirds of a degree of freedom.
_SUCCESSIVE = 2 / 3


@dataclass(frozen=True)
class RunSpread:
    """Relative standard deviation of the means of separate runs, and what it rests on.

    freedom: degrees of freedom; an assumption counts as much as five runs of one point.
    """

    relative_sd: float
    freedom: float = _ASSUMED_FREEDOM

    def __post_init__(self) -> None:
        if not (math.isfinite(self.relative_sd) and self.relative_sd >= 0 and self.freedom > 0):
            raise ValueError(f"no spread: {self}")

    def learned(self, groups: Iterable[Sequence[float]]) -> RunSpread:
        """With the means, in seconds, of runs of one point in each group taken into account.

        A group's runs are in the order of time, and each is compared with the one before it,
        so that a machine that drifts is not taken for one that is noisy (von Neumann's mean
        square successive difference, 1941); differences of runs that were disturbed are cut at
        four spreads. Pooled with the assumption like the prior of a variance (Gelman et al.,
        Bayesian Data Analysis, 2.6).
        """
        freedom = self.freedom
        total = freedom * self.relative_sd**2
        most = _MOST_SPREADS * max(self.relative_sd, _LEAST_CUT)
        for runs in groups:
            for before, after in itertools.pairwise(runs):
                total += _SUCCESSIVE * min(abs(math.log(after / before)), most) ** 2 / 2
                freedom += _SUCCESSIVE
        return RunSpread(math.sqrt(total / freedom), freedom)


def interval95(run: RunEstimate, spread: RunSpread) -> tuple[float, float] | None:
    """The 95 % interval of the point's time from one run; None where the run was too short.

    The errors within the run and between runs add up; the degrees of freedom of the sum are
    Satterthwaite's (Biometrics Bulletin 2, 1946).
    """
    if run.error_s is None:
        return None
    within, between = run.error_s**2, (spread.relative_sd * run.mean_s) ** 2
    variance = within + between
    if variance == 0:
        return (run.mean_s, run.mean_s)
    freedom = variance**2 / (within**2 / run.freedom + between**2 / spread.freedom)
    half = student_t_975(max(freedom, 1.0)) * math.sqrt(variance)
    return (max(run.mean_s - half, 0.0), run.mean_s + half)
