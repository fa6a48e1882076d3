"""Steps of a trial in whole passes over the data window."""

from __future__ import annotations

from math import ceil

from autotune.errors import UserError
from autotune.ports import MeasurementPlan


def plan_passes(
    window: int, warmup_steps: int, min_steps: int, max_steps: int, least_warmup: int = 0
) -> MeasurementPlan:
    """As many passes as `max_steps` holds, after those that warm up.

    window: global batches after which the data repeat. min_steps: scored steps that must fit.
    least_warmup: passes that warm up at least. Raises UserError where none fits.
    """
    needed = window * ceil(min_steps / window)
    if needed > max_steps:
        raise UserError(
            f"measure.max_steps={max_steps} is less than the {needed} steps that "
            f"measure.min_steps={min_steps} takes in whole passes over the data window of "
            f"{window} steps; give measure.max_steps={needed} or more"
        )
    warmup = window * max(least_warmup, ceil(warmup_steps / window))
    return MeasurementPlan(warmup, window * (max_steps // window), window)
