"""Where a run's warm-up ends.

First steps compile, fill caches and allocate: on real NPUs they took up to 50 times as long
as the rest. How many they are depends on the point, so they are found, not assumed: warm-up
is the leading stretch of steps that take longer than the same batch did later in the run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A step within this share of its later time is no longer warming up, however even the rest is.
_LEAST_TOLERANCE = 0.08
# However uneven the rest is: half of it may still be warm-up itself.
_MOST_TOLERANCE = 0.25
_SETTLED_AFTER = 3  # steps in a row


@dataclass(frozen=True)
class TimedStep:
    """One step that did full work. place: its global batch in the data window."""

    step: int
    place: int
    time_s: float


def warmup_length(steps: Sequence[TimedStep]) -> int:
    """How many of the first steps are warm-up; at most half of them.

    The second half of the run is the reference: each step is compared with the lower median
    of its own batch there (of all batches where its own does not occur), and the run has
    warmed up at the first of three steps in a row that are slower by no more than 8 %, or by
    three times the spread of the reference itself, at most 25 %.
    """
    half = len(steps) // 2
    if half == 0:
        return 0
    later = steps[half:]
    references = place_references(later)
    anywhere = statistics.median_low([step.time_s for step in later])
    ratios = [step.time_s / references.get(step.place, anywhere) for step in steps]
    spread = spread_of(ratios[half:], len(references))
    tolerance = min(max(_LEAST_TOLERANCE, 3 * spread), _MOST_TOLERANCE)
    settled = [ratio <= 1 + tolerance for ratio in ratios]
    for first in range(half):
        if all(settled[first : min(first + _SETTLED_AFTER, half + 1)]):
            return first
    return half


def place_references(steps: Sequence[TimedStep]) -> dict[int, float]:
    """The lower median of the times of each batch: what it takes when nothing disturbs it."""
    times: dict[int, list[float]] = {}
    for step in steps:
        times.setdefault(step.place, []).append(step.time_s)
    return {place: statistics.median_low(values) for place, values in times.items()}


def spread_of(ratios: Sequence[float], references: int) -> float:
    """Robust standard deviation of ratios around 1; 0 where there are too few to tell.

    references: how many of the ratios are those of the references to themselves, which say
    nothing. Source: the median absolute deviation, times 1.4826 for a normal distribution.
    """
    deviations = sorted(abs(math.log(ratio)) for ratio in ratios)[references:]
    return 1.4826 * statistics.median(deviations) if len(deviations) > 1 else 0.0
