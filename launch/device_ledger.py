"""Which devices came back clean from their runs, and which are left out for the rest of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TOLERANCE_BYTES = 256 << 20
"""Drivers move a few MiB; what an ended process left is more."""

_MOST_STRIKES = 2


@dataclass(frozen=True)
class DeviceState:
    """A device of one host after a run, or before one that was not begun.

    name: as in the variable of visible devices. floor_bytes: in use when nothing of the sweep
    ran on it; used_bytes: in use now; None where nothing tells.
    """

    name: str
    floor_bytes: int | None = None
    used_bytes: int | None = None

    @property
    def held_bytes(self) -> int:
        """What is in use beyond the floor."""
        if self.used_bytes is None or self.floor_bytes is None:
            return 0
        return max(self.used_bytes - self.floor_bytes, 0)

    @property
    def is_clean(self) -> bool:
        """Whether its memory is back to where it was, as far as anything tells."""
        return self.held_bytes <= TOLERANCE_BYTES


Device = tuple[str, str]
"""A host's and a device's name."""


@dataclass
class DeviceLedger:
    """What is known of every device that the sweep has used, by host."""

    _floors: dict[Device, int] = field(default_factory=dict)
    _strikes: Counter[Device] = field(default_factory=Counter)
    _left_out: set[Device] = field(default_factory=set)

    def floors(self) -> Mapping[str, Mapping[str, int]]:
        """Bytes in use of an idle device, by host and device."""
        floors: dict[str, dict[str, int]] = {}
        for (host, name), value in self._floors.items():
            floors.setdefault(host, {})[name] = value
        return floors

    def note(self, host: str, states: Iterable[DeviceState]) -> list[Device]:
        """Takes note of devices after a run; those that are to be left out from now on."""
        out = []
        for state in states:
            device = (host, state.name)
            if state.floor_bytes is not None:
                self._floors[device] = state.floor_bytes
            if not state.is_clean:
                out += self.strike(device)
        return out

    def strike(self, device: Device) -> list[Device]:
        """Counts a failure against a device; the device, where it is to be left out for it."""
        if device in self._left_out:
            return []
        self._strikes[device] += 1
        if self._strikes[device] < _MOST_STRIKES:
            return []
        self._left_out.add(device)
        return [device]

    def left_out(self, host: str) -> int:
        """How many devices of the host are left out."""
        return sum(device[0] == host for device in self._left_out)


def describe_unclean(states: Sequence[DeviceState]) -> str:
    """Such as "device 3 still holds 12.0 GiB of a trial that has ended"."""
    held = [state for state in states if not state.is_clean]
    return "; ".join(
        f"device {state.name} still holds {state.held_bytes / (1 << 30):.1f} GiB that were free "
        "before the sweep used it"
        for state in held
    )
