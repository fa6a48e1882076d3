"""Devices that are left out: Ray cannot skip one, so an actor holds it and does nothing."""

from __future__ import annotations

import os
import socket
from typing import Any

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from autotune.ports import DeviceType, Placement
from launch.capacity import actor_devices
from launch.device_environment import visible_devices
from launch.device_ledger import Device

_WAIT_S = 15.0


class _Holder:
    """Holds one device of its node."""

    def device(self, kind: DeviceType) -> tuple[str, str]:
        """The host, and the device that Ray gave."""
        (name,) = visible_devices(os.environ, kind) or ("",)
        return socket.gethostname(), name


_HolderActor = ray.remote(max_restarts=0)(_Holder)


class Quarantine:
    """Takes devices of one kind out of the cluster, until Ray is left."""

    def __init__(self, kind: DeviceType) -> None:
        self._kind: DeviceType = kind
        self._holders: list[Any] = []

    def leave_out(self, device: Device) -> str:
        """Holds a device for good; what a person should know.

        Ray gives whichever device is free, so that others are taken beside it for a moment.
        """
        place, name = device
        others: list[Any] = []
        host = ""
        try:
            while True:
                actor = self._take_one(place)
                found = self._device_of(actor)
                if found is None:
                    ray.kill(actor)
                    return (
                        f"device {name} failed twice, but others hold it: it cannot be left out, "
                        "and its next trial may fail"
                    )
                host = found[0]
                if found[1] == name:
                    self._holders.append(actor)
                    return f"device {name} of {host} failed twice: it is left out from now on"
                others.append(actor)
        finally:
            for other in others:
                ray.kill(other)

    def _take_one(self, place: str) -> Any:
        return _HolderActor.options(
            **actor_devices(Placement(1, 1, self._kind)),
            scheduling_strategy=NodeAffinitySchedulingStrategy(place, soft=False),
        ).remote()

    def _device_of(self, actor: Any) -> tuple[str, str] | None:
        try:
            found: tuple[str, str] = ray.get(actor.device.remote(self._kind), timeout=_WAIT_S)
        except (ray.exceptions.RayError, TimeoutError):
            return None
        return found
