"""The folder of a sweep's temporary files, and those of sweeps that could not remove theirs.

A sweep that is killed is cleaned up after by its guard. Where both are killed at once, or the
machine loses its power, the next sweep on the host does it: the lock on a folder's owner file is
free then.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import IO

_LONGEST_TEMP_DIR = 25
"""Ray puts Unix sockets 82 characters below its folder; their paths end at 107."""

_PREFIX, _OWNER = "at-", "owner"


class SessionFolder:
    """A new folder of our own for Ray's sockets and logs, with a short path, and its lock.

    Side effect: removes the folders of this user's dead sweeps beside it.
    """

    def __init__(self) -> None:
        wanted = tempfile.gettempdir()
        short = wanted if len(wanted) <= _LONGEST_TEMP_DIR else "/tmp"  # noqa: S108 - mkdtemp below
        remove_abandoned(Path(short))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=short))
        self._lock = _lock_new(self.path)

    def release(self) -> None:
        """Gives the lock back, when the folder is gone."""
        self._lock.close()


def remove_abandoned(parent: Path) -> list[Path]:
    """Removes the folders there whose sweeps on this host are dead; returns them."""
    removed = []
    for folder in sorted(parent.glob(f"{_PREFIX}*")):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed


def _lock_new(folder: Path) -> IO[bytes]:
    # Locked before it has its name: nobody finds it free while its owner lives.
    unnamed = folder / f"{_OWNER}.new"
    lock = unnamed.open("wb")
    lock.write(socket.gethostname().encode())
    lock.flush()
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _OWNER)
    return lock


def _is_abandoned(folder: Path) -> bool:
    owner = folder / _OWNER
    try:
        if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
            return False
        with owner.open("rb") as lock:
            if lock.read().decode(errors="replace") != socket.gethostname():
                return False
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it lives, is somebody else's, or is none of ours
        return False
    return True
