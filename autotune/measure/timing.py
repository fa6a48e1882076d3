"""Step times -> the time of one global batch, with its error within the run.

The data window is a fixed sequence of global batches, and batches differ in length, so a
step is compared only with the steps of the same batch: the estimate is the mean over the
window of each batch's mean, and its error comes from the relative spread within batches
(stratified sampling; Cochran, Sampling Techniques, 5.3-5.4). A machine that is slower for
a while makes neighbouring steps alike, which that error does not see; so the means of whole
passes over the window are looked at too, and the larger error counts (batch means; Law,
Simulation Modeling and Analysis, 9.5.3).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.student import student_t_975
from autotune.measure.warmup import TimedStep, place_references, spread_of

# A step this much slower than its batch's usual time was disturbed, unless such are many: what
# happens every few steps belongs to the training.
_SLOW_SPREADS = 5.0
_LEAST_SLOW = 0.15
_ONE_SLOW_IN = 16
_LEAST_FREEDOM = 2
_LEAST_BLOCKS = 4
_BLOCK = 4


@dataclass(frozen=True)
class RunEstimate:
    """Seconds for one global batch in one run.

    error_s: standard error within the run, None where the run was too short to tell.
    freedom: its degrees of freedom. used: numbers of the steps that count. slow_steps: how
    many were left out, since something disturbed them.
    """

    mean_s: float
    error_s: float | None
    freedom: float
    used: tuple[int, ...]
    slow_steps: int = 0

    @property
    def steps(self) -> int:
        """How many steps count."""
        return len(self.used)

    @property
    def relative_half_width(self) -> float:
        """Half of the 95 % interval within the run over the mean; infinite where unknown."""
        if self.error_s is None:
            return math.inf
        return student_t_975(self.freedom) * self.error_s / self.mean_s


def estimate_run(steps: Sequence[TimedStep], window_steps: int = 1) -> RunEstimate:
    """The mean time over the data window.

    steps: scored steps in order, warm-up taken out. window_steps: batches in the window, each
    of which must occur. Steps that were disturbed (slower than the usual time of their batch
    by five spreads and 15 %) are left out while they are no more than one, or one in sixteen.
    Raises ValueError when a batch of the window never occurs.
    """
    kept = _undisturbed(steps)
    if len({step.place for step in kept}) < window_steps:
        raise ValueError(f"{len(kept)} steps do not cover the data window of {window_steps}")
    means = _place_means(kept)
    mean = statistics.fmean(means.values())
    error, freedom = _larger(_error_within_places(kept, means), _error_of_blocks(kept, means))
    return RunEstimate(
        mean,
        None if error is None else error * mean,
        freedom,
        tuple(step.step for step in kept),
        len(steps) - len(kept),
    )


def _undisturbed(steps: Sequence[TimedStep]) -> list[TimedStep]:
    references = place_references(steps)
    ratios = [step.time_s / references[step.place] for step in steps]
    bound = 1 + max(_LEAST_SLOW, _SLOW_SPREADS * spread_of(ratios, len(references)))
    kept = [step for step, ratio in zip(steps, ratios, strict=True) if ratio <= bound]
    few = len(steps) - len(kept) <= max(1, len(steps) // _ONE_SLOW_IN)
    return kept if few else list(steps)


def _place_means(steps: Sequence[TimedStep]) -> dict[int, float]:
    times: dict[int, list[float]] = {}
    for step in steps:
        times.setdefault(step.place, []).append(step.time_s)
    return {place: statistics.fmean(values) for place, values in times.items()}


def _error_within_places(
    steps: Sequence[TimedStep], means: dict[int, float]
) -> tuple[float | None, float]:
    """Relative standard error of the window's mean, from the spread within batches."""
    freedom = len(steps) - len(means)
    if freedom < _LEAST_FREEDOM:
        return None, 0.0
    residual = sum((step.time_s / means[step.place] - 1) ** 2 for step in steps)
    variance = residual / freedom
    counts = dict.fromkeys(means, 0)
    for step in steps:
        counts[step.place] += 1
    window = statistics.fmean(means.values()) * len(means)
    share = sum((means[place] / window) ** 2 / counts[place] for place in means)
    return math.sqrt(variance * share), freedom


def _error_of_blocks(
    steps: Sequence[TimedStep], means: dict[int, float]
) -> tuple[float | None, float]:
    """Relative standard error from the means of stretches of neighbouring steps."""
    length = max(_BLOCK, len(means))
    ratios = [step.time_s / means[step.place] for step in steps]
    blocks = [
        statistics.fmean(ratios[start : start + length])
        for start in range(0, len(ratios) - length + 1, length)
    ]
    if len(blocks) < _LEAST_BLOCKS:
        return None, 0.0
    return statistics.stdev(blocks) / math.sqrt(len(blocks)), len(blocks) - 1


def _larger(
    one: tuple[float | None, float], other: tuple[float | None, float]
) -> tuple[float | None, float]:
    if one[0] is None or other[0] is None:
        return one if other[0] is None else other
    return max(one, other, key=lambda pair: (pair[0] or 0.0) * student_t_975(pair[1]))


@dataclass(frozen=True)
class BatchTime:
    """Seconds for one global batch. ci95_s is None when the run was too short to give one."""

    mean_s: float
    ci95_s: tuple[float, float] | None
    steps: int


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the baseline, with a 95 % interval where there is one."""

    ratio: float
    ci95: tuple[float, float] | None


def speedup(baseline: BatchTime, candidate: BatchTime) -> Speedup:
    """Baseline over candidate, two independent estimates (delta method on the logarithm)."""
    ratio = baseline.mean_s / candidate.mean_s
    if baseline.ci95_s is None or candidate.ci95_s is None:
        return Speedup(ratio, None)
    relative = [(t.ci95_s[1] - t.mean_s) / t.mean_s for t in (baseline, candidate) if t.ci95_s]
    half = math.hypot(*relative)
    return Speedup(ratio, (ratio * math.exp(-half), ratio * math.exp(half)))
