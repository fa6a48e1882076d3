"""Whether what a program printed agrees with what its ranks recorded."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from autotune.measure.records import RankRecords

_LEAST_STEPS = 3
_TOLERATED = 0.1


def disagreement(ranks: Sequence[RankRecords], printed: Sequence[RankRecords]) -> str | None:
    """In words, where times of the same steps differ by more than a tenth in the middle.

    Both count steps as the program does. The first steps are left out: programs differ in what
    they put into them. None where they agree, or too little was printed.
    """
    told = {step.step: step.time_s for source in printed for step in source.steps}
    recorded: dict[int, float] = {}
    for rank in ranks:
        for step in rank.steps:
            if not step.profiled:
                recorded[step.step] = max(step.time_s, recorded.get(step.step, 0.0))
    common = sorted(told.keys() & recorded.keys())[1:]
    ratios = [told[step] / recorded[step] for step in common if recorded[step] > 0]
    if len(ratios) < _LEAST_STEPS:
        return None
    middle = statistics.median(ratios)
    if abs(middle - 1) <= _TOLERATED:
        return None
    return f"the program prints {middle:.2f} times the recorded time of a step"
