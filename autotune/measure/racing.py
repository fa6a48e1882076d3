"""Whether a running trial needs more steps.

A trial ends when its time is known well enough, or when it cannot win any more: the lower
end of its interval lies above the upper end of the best so far (racing; Maron and Moore,
Hoeffding Races, 1994). Both intervals include the spread between runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate


class Decision(StrEnum):
    """What to do with a running trial."""

    GO_ON = "go_on"
    ENOUGH = "enough"  # measured to the precision that was asked for
    LOSES = "loses"  # cannot win any more


@dataclass(frozen=True)
class RaceRules:
    """When a trial has run for long enough.

    min_steps: scored steps before anything is decided. precision: half of the 95 % interval
    within the run, as a share of the time, that is narrow enough. drop_losers: whether trials
    that cannot win are stopped.
    """

    min_steps: int
    precision: float
    drop_losers: bool = True


def decide(
    run: RunEstimate,
    rules: RaceRules,
    spread: RunSpread,
    incumbent_high_s: float | None,
    over_limit: bool = False,
) -> Decision:
    """Whether the trial goes on.

    incumbent_high_s: upper end of the 95 % interval of the best point so far, None where there
    is none to beat. over_limit: the peak is over the limit already, so that only a rough time
    is wanted.
    """
    if run.steps < rules.min_steps:
        return Decision.GO_ON
    if over_limit:
        return Decision.ENOUGH
    if rules.drop_losers and incumbent_high_s is not None:
        interval = interval95(run, spread)
        if interval is not None and interval[0] > incumbent_high_s:
            return Decision.LOSES
    return Decision.ENOUGH if run.relative_half_width <= rules.precision else Decision.GO_ON
