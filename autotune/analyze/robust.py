"""Is one value out of line with the others? Medians, so that what is out of line has no say."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

# The standard deviation of a normal distribution is 1.4826 times its median deviation.
_NORMAL = 1.4826


def distance(value: float, others: Sequence[float], floor: float) -> float:
    """How far `value` lies from the median of the others, in their standard deviations.

    floor: the least standard deviation that is believed; few values that agree by chance
    would make anything look far away.
    """
    middle = median(others)
    spread = _NORMAL * median(abs(other - middle) for other in others)
    return (value - middle) / max(spread, floor)


def needed_distance(count: int) -> float:
    """The distance from which the farthest of `count` values is no chance.

    About the 99th percentile of that distance over normally distributed values, simulated for
    5 to 256 of them: few values judge their own spread badly, and of many one is far out.
    """
    return float(4 + 200 / count**1.6)
