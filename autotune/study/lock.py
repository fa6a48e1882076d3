"""One sweep at a time on a study."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psutil
from filelock import FileLock, Timeout

from autotune.errors import UserError

# The last holder may be on its way out.
_PATIENCE_S = 1.0


@contextmanager
def sweep_lock(path: Path) -> Iterator[None]:
    """Holds the study for this process. Raises UserError that names who holds it.

    The operating system drops the lock with the process, so a killed sweep leaves none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=_PATIENCE_S)
    holder = holder_file(path)
    try:
        lock.acquire()
    except Timeout:
        refuse_second_sweep(path)
    except OSError as error:
        raise UserError(
            f"{path} cannot be locked ({error.strerror or error}); give study.dir on a file system "
            "that has locks, such as a local disk"
        ) from None
    try:
        holder.write_text(
            json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8"
        )
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()
        _remove_empty(path.parent, path)


def refuse_second_sweep(path: Path) -> NoReturn:
    """Raises UserError that names who holds the study."""
    raise UserError(
        f"another sweep runs on this study: {_read_holder(holder_file(path))}; wait for "
        "it, stop it, or start a study of its own with study.name=NAME"
    )


def is_locked(path: Path) -> bool:
    """Whether a sweep holds the study now.

    The lock tells, which goes with its holder, while what that wrote down stays when it was
    killed, and its number may be given again. It is tried only where somebody is said to have it,
    since for that moment a starting sweep would find it taken.
    """
    holder = _holder(holder_file(path))
    if holder is None:
        return False
    if holder["host"] == socket.gethostname() and not psutil.pid_exists(holder["pid"]):
        return False
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _read_holder(path: Path) -> str:
    holder = _holder(path)
    if holder is None:
        return "its process is not known"
    return f"process {holder['pid']} on {holder['host']}"


def _holder(path: Path) -> dict[str, Any] | None:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return {"pid": int(holder["pid"]), "host": str(holder["host"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove_empty(folder: Path, lock: Path) -> None:
    """A start that failed before it wrote anything leaves no folder behind."""
    if [path for path in folder.iterdir() if path != lock]:
        return
    lock.unlink(missing_ok=True)
    folder.rmdir()


def holder_file(lock: Path) -> Path:
    """Where the sweep that holds the lock wrote down who it is, when it started."""
    return lock.with_suffix(".holder")
