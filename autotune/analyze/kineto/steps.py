"""The time of a step by what the device did in it."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.analyze.intervals import total, within
from autotune.analyze.kineto.activity import Activity
from autotune.analyze.kineto.windows import Window
from autotune.analyze.profile import StepTime


def step_time(
    window: Window, activity: Activity, phases_us: Mapping[str, float] | None
) -> StepTime:
    """One step. preparing + computing + not overlapped + free = the step.

    The device's part begins with its first task in the step and ends with the step. Where the
    device was not done with the step when the host was, the step is longer than on the host.
    """
    length = window.end - window.start
    busy = within(activity.busy, window.start, window.end)
    preparing = busy[0][0] - window.start if busy else 0
    computing = total(within(activity.computing, window.start, window.end))
    communication = total(within(activity.communication, window.start, window.end))
    exposed = total(within(activity.exposed, window.start, window.end))
    return StepTime(
        step=window.number,
        computing_us=computing / 1000,
        not_overlapped_us=exposed / 1000,
        overlapped_us=(communication - exposed) / 1000,
        communication_us=communication / 1000,
        free_us=(length - preparing - total(busy)) / 1000,
        stage_us=(length - preparing) / 1000,
        preparing_us=preparing / 1000,
        host_us=None if window.number is None else length / 1000,
        phases_us=phases_us,
    )
