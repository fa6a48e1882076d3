"""Where a sweep's trials run."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.ports import DeviceType


@dataclass(frozen=True)
class ClusterSettings:
    """The `cluster` group of the configuration, as far as launching needs it.

    address: of a running Ray, None to start one on this host.
    devices_per_trial: over all of the trial's nodes.
    wait_for_devices_s: how long devices that others use are waited for, in seconds.
    """

    address: str | None = None
    device: DeviceType = "cpu"
    devices_per_trial: int = 1
    nodes_per_trial: int = 1
    max_concurrent_trials: int = 1
    wait_for_devices_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("devices_per_trial", "nodes_per_trial", "max_concurrent_trials"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.devices_per_trial % self.nodes_per_trial:
            raise ValueError(
                f"devices_per_trial={self.devices_per_trial} cannot be spread evenly over "
                f"nodes_per_trial={self.nodes_per_trial}"
            )

    @property
    def devices_per_node(self) -> int:
        """Devices of one trial on each of its nodes."""
        return self.devices_per_trial // self.nodes_per_trial
