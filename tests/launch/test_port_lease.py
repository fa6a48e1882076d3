"""Ports that trials lease are free, and nobody leases them twice."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from launch import port_lease
from launch.port_lease import NoFreePortError, PortLease

ROOT = Path(__file__).resolve().parents[2]


def one_choice(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Leaves the lease nothing to choose but one port."""
    monkeypatch.setattr(port_lease.random, "randrange", lambda *_: port)


def free_port() -> int:
    lease = PortLease.take()
    lease.release()
    return lease.port


def test_ports_lie_where_the_kernel_takes_none() -> None:
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    leases = [PortLease.take() for _ in range(50)]
    assert all(1024 <= lease.port < first_ephemeral for lease in leases)
    assert len({lease.port for lease in leases}) == 50
    for lease in leases:
        lease.release()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_with_a_listener_is_not_leased(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    port = free_port()
    one_choice(monkeypatch, port)
    with socket.socket() as listener:
        listener.bind((address, port))
        listener.listen()
        with pytest.raises(NoFreePortError, match="no free port between"):
            PortLease.take()
    PortLease.take().release()


def test_two_processes_do_not_lease_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = PortLease.take()
    code = (
        "from launch import port_lease\n"
        f"port_lease.random.randrange = lambda *_: {lease.port}\n"
        "try: port_lease.PortLease.take()\n"
        "except port_lease.NoFreePortError: print('taken')\n"
    )
    argv = [sys.executable, "-c", code]
    other = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    assert other.stdout == b"taken\n"
    lease.release()
    one_choice(monkeypatch, lease.port)
    assert PortLease.take().port == lease.port


def test_neighbouring_ports_are_leased_together(monkeypatch: pytest.MonkeyPatch) -> None:
    block = PortLease.take(count=16)
    one_choice(monkeypatch, block.port + 15)
    with pytest.raises(NoFreePortError):
        PortLease.take()
    block.release()
