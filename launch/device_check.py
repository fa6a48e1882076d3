"""Whether the devices of a trial are as they were before the sweep used them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from autotune.ports import DeviceType
from launch.device_environment import visible_devices
from launch.device_ledger import DeviceState
from launch.device_memory import MemoryInUse, read_device_memory

_LOOK_EVERY_S = 0.5

Read = Callable[[DeviceType, Mapping[str, str]], "dict[str, MemoryInUse] | None"]


class DeviceCheck:
    """Looks at the devices that a trial's ranks see.

    env: the ranks' environment. floors: bytes in use of each when nothing ran on it; what is
    not known yet is what is found first. patience_s: drivers give the memory of a killed process
    back some seconds later.
    """

    def __init__(
        self,
        device: DeviceType,
        env: Mapping[str, str],
        floors: Mapping[str, int],
        patience_s: float,
        read: Read = read_device_memory,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._device: DeviceType = device
        self._env = env
        self._names = visible_devices(env, device)
        self._floors = dict(floors)
        self._patience_s = patience_s
        self._read = read
        self._sleep = sleep

    def await_clean(self) -> tuple[DeviceState, ...]:
        """The devices in the ranks' order, as soon as all are clean or after a patient wait."""
        waited_s = 0.0
        while True:
            states = self._look()
            if all(state.is_clean for state in states) or waited_s >= self._patience_s:
                return states
            self._sleep(_LOOK_EVERY_S)
            waited_s += _LOOK_EVERY_S

    def _look(self) -> tuple[DeviceState, ...]:
        found = self._read(self._device, self._env) if self._names else None
        return tuple(self._state(name, (found or {}).get(name)) for name in self._names)

    def _state(self, name: str, memory: MemoryInUse | None) -> DeviceState:
        if memory is None:
            return DeviceState(name)
        # What others have given back is the floor from now on.
        floor = min(self._floors.get(name, memory.used_bytes), memory.used_bytes)
        self._floors[name] = floor
        return DeviceState(name, floor, memory.used_bytes)
