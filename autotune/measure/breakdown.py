"""Where the time of a global batch goes, from what the ranks recorded."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from autotune.measure.records import PHASES
from autotune.measure.scored import Row


def breakdown_of(rows: Sequence[Row], mean_s: float, window_steps: int) -> dict[str, float] | None:
    """Seconds by phase, adding up to `mean_s`; None where a rank did not record its phases.

    The mean over ranks, and over the batches of the window as for the time itself. What of
    its step a rank recorded under no phase is scheduling: the host's own time. The part of the
    slowest rank's time that the mean over ranks does not cover is waiting for it, and waiting
    for another rank is communication.
    """
    by_place: dict[int, list[Mapping[str, float]]] = {}
    for row in rows:
        for step in row:
            if step.phases_s is None:
                return None
            rest_s = max(step.time_s - sum(step.phases_s.values()), 0.0)
            phases = {**step.phases_s, "scheduling": step.phases_s["scheduling"] + rest_s}
            by_place.setdefault(step.step % window_steps, []).append(phases)
    if not by_place:
        return None
    breakdown = {
        name: statistics.fmean(
            statistics.fmean(phases[name] for phases in place) for place in by_place.values()
        )
        for name in PHASES
    }
    rest_s = mean_s - sum(breakdown.values())
    if rest_s < 0:  # phases that overlap: as shares they still say where the time goes
        return {name: s * mean_s / (mean_s - rest_s) for name, s in breakdown.items()}
    breakdown["communication"] += rest_s
    return breakdown
