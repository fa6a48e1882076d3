"""Whether printed times of steps can be true, by the moments at which their lines came."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from itertools import pairwise

CLOCK = "clock"
"""Kind of the error that says so in a node's printed records."""

# Where whole steps take so many times what is printed, the printed time is no step's.
_FACTOR = 3.0
# Lines are read some milliseconds late on a busy machine, and writing them takes time too.
_LEAST_DIFFERENCE_S = 0.01
_LEAST_GAPS = 5
_LEAST_SPAN_S = 0.2
_LARGEST_STRIDE = 10**9  # a number of a step may be larger than a float holds


def contradiction(arrivals: Mapping[int, float], printed_s: Mapping[int, float]) -> str | None:
    """In words, where steps come far more slowly than they say; None where they may be true.

    arrivals: when the first line of a step was read, seconds of one clock, by step. printed_s:
    seconds of a step, by step. The middle of all gaps counts, so that pauses for a checkpoint or
    an evaluation do no harm; lines that come in bursts, as from a buffer, make most gaps 0 and
    contradict nothing.
    """
    known = sorted(arrivals.keys() & printed_s.keys())
    if len(known) <= _LEAST_GAPS:
        return None
    if arrivals[known[-1]] - arrivals[known[0]] < _LEAST_SPAN_S:
        return None
    gap_s = statistics.median(
        (arrivals[later] - arrivals[earlier]) / min(later - earlier, _LARGEST_STRIDE)
        for earlier, later in pairwise(known)
    )
    step_s = statistics.median(printed_s[step] for step in known[1:])
    if gap_s < _FACTOR * step_s or gap_s - step_s < _LEAST_DIFFERENCE_S:
        return None
    return (
        f"the program prints {_milliseconds(step_s)} for a step, but its lines come "
        f"{_milliseconds(gap_s)} apart a step: the printed time is not that of a whole step, or "
        "is in another unit than trainer.printed says"
    )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
