"""The six phases of a step: every moment belongs to one, so they add up to the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autotune.analyze.intervals import Interval, intersect, subtract, total, within
from autotune.analyze.kineto.activity import Activity, device_computing
from autotune.analyze.kineto.events import DeviceTask, Recording
from autotune.analyze.kineto.labels import HostLabels
from autotune.analyze.kineto.windows import Window
from autotune.measure.records import PHASES

# Where kernels of several phases run at once, the first one here has the time.
_ORDER = ("forward_backward", "optimizer", "post_processing", "data_loading", "communication")
_HOST_PHASES = ("data_loading", "communication")


def phase_splitter(
    recording: Recording, activity: Activity, labels: HostLabels
) -> Callable[[Window], Mapping[str, float]]:
    """A function from a step to its microseconds by phase."""
    if recording.is_host_only:
        return lambda window: _split_host(window, activity, labels)
    tasks = tasks_by_phase(recording, labels)
    computing = {phase: device_computing(tasks[phase], activity.communication) for phase in _ORDER}
    return lambda window: _split_device(window, computing, activity, labels)


def tasks_by_phase(recording: Recording, labels: HostLabels) -> dict[str, list[DeviceTask]]:
    """The device's tasks by the phase in which the host launched them.

    A task whose launch was not recorded counts as launched when it began, but not for the
    phases in which the host seldom launches anything.
    """
    phase_of = labels.phase_of()
    tasks: dict[str, list[DeviceTask]] = {phase: [] for phase in _ORDER}
    for task in recording.tasks:
        launch = recording.launches.get(task.correlation)
        phase = phase_of.at(launch.at if launch else task.start)
        if launch is None and phase in _HOST_PHASES:
            phase = "forward_backward"
        tasks[phase].append(task)
    return tasks


class _Shares:
    """Moments of a step that are given to one phase after the other."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._left: list[Interval] = [(window.start, window.end)]
        self._given = dict.fromkeys(PHASES, 0)

    def give(self, phase: str, moments: list[Interval]) -> None:
        """What of these moments is still left goes to the phase."""
        mine = within(moments, self._window.start, self._window.end)
        taken = intersect(self._left, mine)
        if taken:
            self._given[phase] += total(taken)
            self._left = subtract(self._left, taken)

    def finish(self) -> dict[str, float]:
        """Microseconds by phase; the rest is the device waiting for the host."""
        self._given["scheduling"] += total(self._left)
        return {phase: given / 1000 for phase, given in self._given.items()}


def _split_device(
    window: Window,
    computing: Mapping[str, list[Interval]],
    activity: Activity,
    labels: HostLabels,
) -> dict[str, float]:
    """Computing goes to the phase that launched it; idle moments are looked up on the host."""
    shares = _Shares(window)
    for phase in _ORDER:
        shares.give(phase, computing[phase])
    shares.give("communication", activity.communication)
    for phase in _HOST_PHASES:
        shares.give(phase, labels.ranges[phase])
    return shares.finish()


def _split_host(window: Window, activity: Activity, labels: HostLabels) -> dict[str, float]:
    """Ranges count as long as they took; only where nothing computes, communication does."""
    shares = _Shares(window)
    shares.give("data_loading", labels.ranges["data_loading"])
    shares.give("communication", labels.ranges["communication"])
    shares.give("communication", activity.exposed)
    for phase in ("optimizer", "post_processing", "forward_backward"):
        shares.give(phase, labels.ranges[phase])
    shares.give("post_processing", intersect(activity.computing, labels.after_backward))
    shares.give("forward_backward", activity.computing)
    return shares.finish()
