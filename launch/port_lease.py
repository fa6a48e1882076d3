"""A free TCP port for a trial's ranks to meet on, leased among the sweeps of one host."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_LOWEST = 20000
_DEFAULT_EPHEMERAL_START = 32768
_TRIES = 200


class NoFreePortError(OSError):
    """No free port was found among those tried."""


class PortLease:
    """A port, or `count` neighbouring ones, that no other lease on this host holds.

    A lease is an abstract Unix socket named after the port: it ends with the
    process that holds it, however that ends. Ports lie below the range from which
    the kernel takes ports for outgoing connections, so that none is taken by
    accident between the lease and the moment a rank listens on it.
    """

    def __init__(self, port: int, holders: tuple[socket.socket, ...]) -> None:
        self.port = port
        self._holders = holders

    @classmethod
    def take(cls, count: int = 1) -> PortLease:
        """Leases free ports. Raises `NoFreePortError`."""
        above = _ephemeral_start()
        for _ in range(_TRIES):
            first = random.randrange(_LOWEST, above - count, count)  # noqa: S311 - no secret
            holders = _hold(range(first, first + count))
            if holders is not None:
                return cls(first, holders)
        raise NoFreePortError(f"no free port between {_LOWEST} and {above} after {_TRIES} tries")

    def release(self) -> None:
        """Lets others lease the ports."""
        for holder in self._holders:
            holder.close()


def _hold(ports: range) -> tuple[socket.socket, ...] | None:
    holders: list[socket.socket] = []
    for port in ports:
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        holders.append(holder)
        try:
            holder.bind(f"\0autotune-port-{port}")
        except OSError:
            leased = False
        else:
            leased = _is_free(port)
        if not leased:
            for held in holders:
                held.close()
            return None
    return tuple(holders)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _ephemeral_start() -> int:
    try:
        words = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    except OSError:
        return _DEFAULT_EPHEMERAL_START
    lowest = int(words[0])
    return lowest if lowest > _LOWEST + 1000 else _DEFAULT_EPHEMERAL_START
