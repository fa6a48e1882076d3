"""A process that outlives the sweep just long enough to leave nothing of it behind.

It ends every process that was started with the sweep's marker, and removes the sweep's
own folder of temporary files, when the sweep closes it or dies in whatever way. It ends
nothing else.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from launch.markers import ROLE, SUPERVISOR_ROLE, SWEEP, TRIAL
from launch.process_tree import environment_of, is_alive, signal_all

SUPERVISORS_GRACE_S = 4.0
"""How long supervisors may take to end their ranks in order, before SIGKILL."""

_POLL_S = 0.05
_PARENT_LOOK_S = 1.0
_GIVE_UP_S = 30.0
_FLAGS = ("-I", "-S", "-X", "utf8")
_CODE = "import sys; sys.path += {paths!r}; from launch.guard import main; main()"


_GUARDS = 2
"""One that is killed has a twin: while Ray starts or joins, Ray lets no other thread of the sweep
run, which could replace it, and may end the sweep."""


class SweepGuard:
    """The sweep's end of two guard processes, of which one that is killed is soon replaced.

    marker: value of `AUTOTUNE_SWEEP` that the sweep's processes carry. folder: removed
    at the end, with all that is in it.
    """

    def __init__(self, marker: str, folder: Path) -> None:
        self.marker = marker
        self.folder = folder
        self._environment = {name: value for name, value in os.environ.items() if name != SWEEP}
        self._lock = threading.Lock()
        self._closing = False
        self._processes = [self._begin() for _ in range(_GUARDS)]
        for number in range(_GUARDS):
            threading.Thread(target=self._keep, args=(number,), daemon=True).start()

    @classmethod
    def start(cls, marker: str, folder: Path) -> SweepGuard:
        """Starts the guards; they watch from when this returns."""
        return cls(marker, folder)

    def close(self) -> None:
        """Ends what is left of the sweep and returns when it is gone. May be repeated."""
        with self._lock:
            self._closing = True
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        codes = [process.wait() for process in self._processes]
        if any(codes):  # somebody has killed one
            end_sweep(self.marker, self.folder)
            remove_leftovers(self.folder)

    def _begin(self) -> subprocess.Popen[bytes]:
        ours = Path(__file__).parent.parent
        theirs = Path(psutil.__file__).parent.parent
        code = _CODE.format(paths=[str(ours), str(theirs)])
        return subprocess.Popen(
            [sys.executable, *_FLAGS, "-c", code, self.marker, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            cwd="/",
            start_new_session=True,
        )

    def _keep(self, number: int) -> None:
        """Starts a guard again when it has died: without one nobody cleans up behind us."""
        while True:
            self._processes[number].wait()
            time.sleep(_POLL_S)
            with self._lock:
                if self._closing:
                    return
                self._processes[number] = self._begin()


def main() -> None:
    """Waits for the end of the sweep and cleans up after it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    marker, folder = sys.argv[1], Path(sys.argv[2])
    sweep = os.getppid()
    while os.getppid() == sweep:
        readable, _, _ = select.select([sys.stdin], [], [], _PARENT_LOOK_S)
        if readable:
            break
    end_sweep(marker, folder)
    remove_leftovers(folder)


def end_sweep(marker: str, folder: Path) -> None:
    """Ends all processes of the sweep: supervisors in order, whatever else at once."""
    started = time.monotonic()
    told: set[int] = set()
    while time.monotonic() < started + SUPERVISORS_GRACE_S + _GIVE_UP_S:
        left = sweep_processes(marker, folder)
        if not left:
            return
        if time.monotonic() > started + SUPERVISORS_GRACE_S:
            signal_all(left, signal.SIGKILL)
        else:
            _end_in_order(left, told)
        time.sleep(_POLL_S)


def _end_in_order(processes: list[psutil.Process], told: set[int]) -> None:
    """Supervisors get one SIGTERM and end their ranks; Ray's own processes get SIGKILL."""
    for process in processes:
        env = environment_of(process)
        if env.get(ROLE) == SUPERVISOR_ROLE:
            if process.pid not in told:
                told.add(process.pid)
                signal_all([process], signal.SIGTERM)
        elif TRIAL not in env:
            signal_all([process], signal.SIGKILL)


def sweep_processes(marker: str, folder: Path) -> list[psutil.Process]:
    """The living processes of a sweep, but for this one."""
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _belongs(process, marker, folder) and is_alive(process)
    ]


def _belongs(process: psutil.Process, marker: str, folder: Path) -> bool:
    if environment_of(process).get(SWEEP) == marker:
        return True
    # Ray's workers write their title over their environment; they keep logs open there.
    return _title(process).startswith("ray::") and _writes_into(process, folder)


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, OSError):
        return ""


def _writes_into(process: psutil.Process, folder: Path) -> bool:
    inside = f"{folder}/"
    descriptors = Path(f"/proc/{process.pid}/fd")
    try:
        return any(str(one.readlink()).startswith(inside) for one in descriptors.iterdir())
    except OSError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Removes the sweep's temporary folder."""
    shutil.rmtree(folder, ignore_errors=True)
