"""Whether a running trial needs more steps.

A trial ends when its time is known well enough, or when it cannot win any more: the lower
end of its interval lies above the upper end of the best so far (racing; Maron and Moore,
Hoeffding Races, 1994). Both intervals include the spread between runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate


class Decision(StrEnum):
    """What to do with a running trial."""

    GO_ON = "go_on"
    ENOUGH = "enough"  # measured to the precision that was asked for
    LOSES = "loses"  # cannot win any more
    OVER_LIMIT = "over_limit"  # holds more memory than it may, so cannot win either

    @property
    def ends_at_once(self) -> bool:
        """Whether the trial is of no further use, a profile included."""
        return self in (Decision.LOSES, Decision.OVER_LIMIT)


@dataclass(frozen=True)
class RaceRules:
    """When a trial has run for long enough.

    min_steps: scored steps of a measurement. precision: half of the 95 % interval within the
    run, as a share of the time, that is narrow enough. drop_losers: whether trials that cannot
    win are stopped. first_look: scored steps after which a trial that is far behind, or over
    the memory limit, may be stopped, before it has an interval of its own. warm_up_share: by
    how much those first steps may be slower than the rest. confirms_s: of a point that runs
    again, the time from which on it is no faster than it was, seconds; it then need not go on.
    """

    min_steps: int
    precision: float
    drop_losers: bool = True
    first_look: int = 4
    warm_up_share: float = 0.15
    confirms_s: float | None = None


def decide(
    run: RunEstimate,
    rules: RaceRules,
    spread: RunSpread,
    incumbent_high_s: float | None,
    over_limit: bool = False,
    step_noise: float | None = None,
) -> Decision:
    """Whether the trial goes on.

    incumbent_high_s: upper end of the 95 % interval of the best point so far, None where there
    is none to beat. over_limit: the peak is over the limit already. step_noise: relative
    standard deviation of one step in the runs so far, None where there are none.
    """
    if over_limit and rules.drop_losers and run.steps >= rules.first_look:
        return Decision.OVER_LIMIT
    if run.steps >= rules.first_look and run.mean_s >= (rules.confirms_s or math.inf):
        return Decision.LOSES
    if run.steps < rules.min_steps:
        if rules.drop_losers and _is_far_behind(run, rules, spread, incumbent_high_s, step_noise):
            return Decision.LOSES
        return Decision.GO_ON
    if rules.drop_losers and incumbent_high_s is not None:
        interval = interval95(run, spread)
        if interval is not None and interval[0] > incumbent_high_s:
            return Decision.LOSES
    return Decision.ENOUGH if run.relative_half_width <= rules.precision else Decision.GO_ON


_NOISE_FREEDOM = 10.0


def _is_far_behind(
    run: RunEstimate,
    rules: RaceRules,
    spread: RunSpread,
    incumbent_high_s: float | None,
    step_noise: float | None,
) -> bool:
    """Whether the first steps already tell that the trial loses.

    They are too few to show their own error, so that of other runs stands in for it, and they
    may belong to the warm-up, so it must lose by a margin.
    """
    if incumbent_high_s is None or step_noise is None or run.steps < rules.first_look:
        return False
    error_s = step_noise * run.mean_s / math.sqrt(run.steps)
    interval = interval95(RunEstimate(run.mean_s, error_s, _NOISE_FREEDOM, run.used), spread)
    return interval is not None and interval[0] * (1 - rules.warm_up_share) > incumbent_high_s
