"""What would cost the night, looked at before anything costs time: places, room, ports, devices."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.config.quantities import format_bytes
from autotune.errors import UserError
from autotune.ports import DeviceType
from launch.device_memory import MemoryInUse, read_device_memory
from launch.port_lease import NoFreePortError, PortLease

_LEAST_ROOM_BYTES = 256 << 20  # below this a study cannot be trusted to be written
_USUAL_ROOM_BYTES = 1 << 30
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at, not written to
_BUSY_SHARE = 0.05  # of a device's memory; drivers take some of it


@dataclass(frozen=True)
class Room:
    """A place that a sweep writes to. needed_bytes: that it may fill, beyond a usual study."""

    path: Path
    key: str
    needed_bytes: int = 0


def preflight(
    rooms: Sequence[Room], device: DeviceType, env: Mapping[str, str], *, is_local: bool
) -> list[str]:
    """What a person should know before a sweep starts; empty where all is well.

    is_local: trials run on this host. Raises UserError for what would end the sweep. Side
    effects: writes and removes a small file in each place, takes and releases a port.
    """
    warnings = [warning for room in rooms for warning in _look_at(room)]
    if is_local:
        _require_port()
        warnings += _shared_memory()
        warnings += busy_devices(read_device_memory(device, env) or {})
    return warnings


def busy_devices(found: Mapping[str, MemoryInUse]) -> list[str]:
    """A sentence on the devices whose memory others use."""
    busy = [
        f"{name} ({format_bytes(memory.used_bytes)} of {format_bytes(memory.total_bytes)})"
        for name, memory in found.items()
        if name.isdecimal() and memory.used_bytes > _BUSY_SHARE * memory.total_bytes
    ]
    if not busy:
        return []
    return [
        f"others may be using device {', '.join(busy)}: trials there may run out of memory, or be "
        "slowed down; see npu-smi info or nvidia-smi, or leave devices out with "
        "ASCEND_RT_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES"
    ]


def _look_at(room: Room) -> list[str]:
    place = _existing(room.path)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(
            f"{room.key}={room.path} cannot be written ({error.strerror or error}); give another "
            f"place, such as {room.key}=~/studies/NAME"
        ) from None
    free = shutil.disk_usage(place).free
    if free < _LEAST_ROOM_BYTES:
        raise UserError(
            f"{room.key}={room.path} has {format_bytes(free)} left on its disk, and a sweep needs "
            f"at least {format_bytes(_LEAST_ROOM_BYTES)}; make room, or give another place"
        )
    wanted = _USUAL_ROOM_BYTES + room.needed_bytes
    if free >= wanted:
        return []
    return [
        f"{room.path} has {format_bytes(free)} left on its disk; a study with its profiles may "
        f"take {format_bytes(wanted)} (profile.disk_budget bounds them), and a full disk stops it"
    ]


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())


def _require_port() -> None:
    try:
        PortLease.take().release()
    except NoFreePortError as error:
        raise UserError(
            f"{error}; end what listens there, or widen the range below "
            "net.ipv4.ip_local_port_range"
        ) from None


def _shared_memory() -> list[str]:
    if not _SHARED_MEMORY.is_dir():
        return []
    free = shutil.disk_usage(_SHARED_MEMORY).free
    if free >= _LEAST_ROOM_BYTES:
        return []
    return [
        f"{_SHARED_MEMORY} has {format_bytes(free)} left, which Ray and data loader workers share; "
        "in a container, start it with --shm-size=8g or --ipc=host"
    ]
