"""Finding and ending processes: descendants, and those that carry a marker.

Sources: prctl(2) on PR_SET_CHILD_SUBREAPER, proc(5) on `/proc/<pid>/environ`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator

import psutil

PR_SET_CHILD_SUBREAPER = 36
_FIRST_POLL_S = 0.01
_LONGEST_POLL_S = 0.1


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process instead of init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def descendants() -> list[psutil.Process]:
    """The living processes below this one; complete only under `become_subreaper`."""
    return [child for child in psutil.Process().children(recursive=True) if is_alive(child)]


def marked(name: str, value: str) -> list[psutil.Process]:
    """The living processes, not this one, that were started with `name=value`."""
    own = os.getpid()
    return [
        process
        for process in psutil.process_iter()
        if process.pid != own and carries(process, name, value) and is_alive(process)
    ]


def carries(process: psutil.Process, name: str, value: str) -> bool:
    """Whether the process was started with `name=value` in its environment."""
    return environment_of(process).get(name) == value


def environment_of(process: psutil.Process) -> dict[str, str]:
    """The environment that a process was started with; empty if it is another user's or gone."""
    try:
        return dict(process.environ())
    except (psutil.Error, OSError):
        return {}


def is_alive(process: psutil.Process) -> bool:
    """Whether the process still runs; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def signal_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Sends a signal to each process that is still the one that was found."""
    for process in processes:
        try:
            process.send_signal(number)
        except (psutil.Error, OSError):  # gone, or no longer ours to signal
            continue


def end_all(
    find: Callable[[], list[psutil.Process]],
    grace_s: float,
    give_up_s: float,
    pause: Callable[[float], None] = time.sleep,
) -> list[psutil.Process]:
    """SIGTERM, SIGKILL after `grace_s` seconds, until `find` finds none.

    pause: called between two looks; a supervisor reads its ranks' output in it.

    Returns what is still alive after `give_up_s` more seconds, such as a process
    that waits for a driver and cannot be killed.
    """
    kill_at = time.monotonic() + grace_s
    signal_all(find(), signal.SIGTERM)
    for poll_s in _polls():
        left = find()
        now = time.monotonic()
        if not left or now > kill_at + give_up_s:
            return left
        if now >= kill_at:
            signal_all(left, signal.SIGKILL)
        pause(min(poll_s, max(kill_at - now, _FIRST_POLL_S)))
    raise AssertionError("polls never end")


def _polls() -> Iterator[float]:
    poll_s = _FIRST_POLL_S
    while True:
        yield poll_s
        poll_s = min(poll_s * 1.5, _LONGEST_POLL_S)
