"""What keeps the launching side from its work, as typed errors for the person at the terminal."""

from __future__ import annotations

from autotune.errors import NoDevicesError, UserError
from autotune.ports import DeviceType


class DevicesUnavailable(NoDevicesError):  # noqa: N818 - says what happened
    """The cluster cannot give a trial its devices, now or ever.

    wanted, there: what a trial needs and what was found, in words.
    """

    def __init__(self, device: DeviceType, wanted: str, there: str, advice: str) -> None:
        super().__init__(
            f"a trial needs {wanted} (cluster.device={device}), but there {there}. {advice}"
        )
        self.device = device
        self.wanted = wanted
        self.there = there


class ClusterLost(NoDevicesError):  # noqa: N818 - says what happened
    """Ray is gone and could not be started or joined again."""


class TrialFilesError(ValueError):
    """A trainer names a file that would lie outside the trial's folder."""


class EnvironmentProbeError(UserError):
    """The trainer's interpreter could not say what it has, or lacks what training needs."""


class InterpreterNotFoundError(EnvironmentProbeError):
    """`trainer.python` is not a program that runs."""


class PackageMissingError(EnvironmentProbeError):
    """The trainer's interpreter runs, but lacks a package that training needs."""
