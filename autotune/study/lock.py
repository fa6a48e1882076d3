"""One sweep at a time on a study."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from filelock import FileLock, Timeout

from autotune.errors import UserError


@contextmanager
def sweep_lock(path: Path) -> Iterator[None]:
    """Holds the study for this process. Raises UserError that names who holds it.

    The operating system drops the lock with the process, so a killed sweep leaves none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, blocking=False)
    holder = path.with_suffix(".holder")
    try:
        lock.acquire()
    except Timeout:
        refuse_second_sweep(path)
    try:
        holder.write_text(
            json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8"
        )
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def refuse_second_sweep(path: Path) -> NoReturn:
    """Raises UserError that names who holds the study."""
    raise UserError(
        f"another sweep runs on this study: {_read_holder(path.with_suffix('.holder'))}; wait for "
        "it, stop it, or start a study of its own with study.name=NAME"
    )


def is_locked(path: Path) -> bool:
    """Whether a sweep holds the study now. Leaves the lock as it is."""
    if not path.exists():
        return False
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _read_holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "its process is not known"
