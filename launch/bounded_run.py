"""A short program, run to its end within a limit, of which nothing is left where that fails.

Its output goes to files, not to pipes: a process that it leaves in the background holds a pipe
open, and who reads to the end of that waits for it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import psutil

from launch.markers import SHORT_RUN
from launch.process_tree import end_all, is_alive, marked, signal_all

_GRACE_S = 2.0
_GIVE_UP_S = 5.0
_LAST_BYTES = 1 << 16

_Find = Callable[[], list[psutil.Process]]


@dataclass(frozen=True)
class Ended:
    """status: as subprocess has it, None where the limit was passed. stderr: its last 64 KiB."""

    status: int | None
    stdout: bytes
    stderr: bytes

    @property
    def last_line(self) -> str:
        """The last line of stderr, empty where nothing was written there."""
        lines = self.stderr.decode("utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def how(self) -> str:
        """Its end in words: the status, and its last line where it has said something."""
        if self.status is not None and self.status < 0:
            end = f"it is ended by signal {-self.status}"
        else:
            end = f"it ends with status {self.status}"
        return f"{end}: {self.last_line}" if self.last_line else f"{end} without a word"


def run_bounded(words: Sequence[str], env: Mapping[str, str], limit_s: float) -> Ended:
    """Runs a program in a session of its own, for at most `limit_s` seconds, without any input.

    Side effects: where it fails, passes the limit, or this process is stopped meanwhile, all that
    it has started is ended, with SIGTERM and 2 s later with SIGKILL. What it leaves in the
    background after an end with status 0 goes on, as at a prompt, and is ended when this process
    exits. Raises OSError where it cannot be started.
    """
    mark = uuid.uuid4().hex
    status: int | None = None
    leader: subprocess.Popen[bytes] | None = None

    def started() -> list[psutil.Process]:
        return [*marked(SHORT_RUN, mark), *_of_session(leader)]

    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            leader = subprocess.Popen(
                list(words),
                env={**env, SHORT_RUN: mark},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = leader.wait(limit_s)
        finally:
            if status != 0:
                _end(started)
        leader.poll()  # takes leave of one that was ended, without waiting for what cannot end
        if status == 0 and (left := started()):
            atexit.register(_end, lambda: [one for one in left if is_alive(one)])
        return Ended(status, _read(stdout, 0), _read(stderr, -_LAST_BYTES))


def _of_session(leader: subprocess.Popen[bytes] | None) -> list[psutil.Process]:
    """The living processes of its session, which may have another environment."""
    if leader is None:
        return []
    return [one for one in psutil.process_iter() if _session(one) == leader.pid and is_alive(one)]


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except OSError:
        return None


def _end(find: _Find) -> None:
    try:
        end_all(find, _GRACE_S, _GIVE_UP_S)
    finally:  # who is asked to stop once more does not wait
        signal_all(find(), signal.SIGKILL)


def _read(file: IO[bytes], start: int) -> bytes:
    """What was written from there on; a negative `start` counts from the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(start if start >= 0 else max(0, size + start))
    return file.read()
