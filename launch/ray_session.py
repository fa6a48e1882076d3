"""The settings under which a sweep's own Ray runs: on this host only, leaving nothing behind."""

from __future__ import annotations

import functools
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from launch.markers import SWEEP


def local_ray_environment(marker: str, folder: Path) -> dict[str, str]:
    """The environment in which Ray's own processes are started."""
    env = {
        SWEEP: marker,
        "PYTHONPATH": _python_path(),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray runs workers, and so our ranks, at nice 15: not the speed they would train at.
        "RAY_worker_niceness": "0",
        # Despite its name: on every system, "0" keeps Ray's servers on the loopback address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    if not any(name in os.environ for name in _AUTHENTICATION):
        env["RAY_AUTH_TOKEN_PATH"] = str(_write_token(folder))
    return env


_AUTHENTICATION = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


@contextmanager
def environment(added: Mapping[str, str]) -> Iterator[None]:
    """Adds variables to this process's environment, and afterwards puts it back as it was."""
    before = dict(os.environ)
    os.environ.update(added)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def require_listener(address: str) -> None:
    """Raises OSError when nothing listens at HOST:PORT: Ray would go on trying for minutes.

    Any other form of an address, such as `auto` or `ray://...`, is left to Ray.
    """
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), _CONNECT_S).close()


_CONNECT_S = 10.0


@contextmanager
def sigterm_handler_kept() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM of a process that starts or joins it.

    With its own, which exits with 15 and without a word, a SIGTERM is still the user's wish to
    stop: raises KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as stop:
        if stop.code == signal.SIGTERM:
            raise KeyboardInterrupt from stop
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _python_path() -> str:
    """Ray's workers import this package from where we did."""
    ours = str(Path(__file__).parent.parent)
    theirs = os.environ.get("PYTHONPATH")
    return f"{ours}{os.pathsep}{theirs}" if theirs else ours


def _write_token(folder: Path) -> Path:
    path = folder / "token"
    path.touch(mode=0o600)
    path.write_text(_token(), encoding="ascii")
    return path


@functools.cache
def _token() -> str:
    """One secret a process, since Ray reads it once a process."""
    return secrets.token_hex(32)
