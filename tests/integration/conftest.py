"""The program as a person runs it, and what it leaves on the machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

_LIMIT_S = 240


@dataclass
class Program:
    """Runs `python -m autotune` in a folder, with a mark that all its processes inherit.

    temporary: a folder for all that it writes elsewhere; Ray's workers, which write their title
    over their environment, are known by it.
    """

    folder: Path
    mark: str
    since: float
    temporary: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts the program; its output goes to a file in the folder."""
        output = (self.folder / "output.txt").open("a")
        return subprocess.Popen(
            [sys.executable, "-m", "autotune", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "TEST_MARK": self.mark,
                "TMPDIR": str(self.temporary),
                "OMP_NUM_THREADS": "1",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            # What a shell starts in the background ignores Ctrl-C; a person's program does not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *words: str) -> int:
        """Runs the program to its end and returns the exit code."""
        return self.start(*words).wait(timeout=_LIMIT_S)

    @property
    def output(self) -> str:
        """All that was printed."""
        return (self.folder / "output.txt").read_text()

    def left_over(self) -> list[str]:
        """Living processes that the program has started, by command line."""
        return [line for process in psutil.process_iter() if (line := self._ours(process))]

    def wait_until_nothing_is_left(self, limit_s: float = 10) -> None:
        """Fails when something of the program lives on for longer than that."""
        until = time.monotonic() + limit_s
        while left := self.left_over():
            assert time.monotonic() < until, left
            time.sleep(0.1)

    def _ours(self, process: psutil.Process) -> str | None:
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.create_time() < self.since:
                return None
            line = " ".join(process.cmdline())
            marked = process.environ().get("TEST_MARK") == self.mark
        except (psutil.Error, OSError):
            return None
        return line if marked or (line.startswith("ray::") and self._writes_here(process)) else None

    def _writes_here(self, process: psutil.Process) -> bool:
        descriptors = Path(f"/proc/{process.pid}/fd")
        try:
            return any(
                str(one.readlink()).startswith(f"{self.temporary}/")
                for one in descriptors.iterdir()
            )
        except OSError:
            return False


def make_program(folder: Path) -> Program:
    folder.mkdir(parents=True)
    temporary = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))  # a short path, for sockets
    return Program(folder, uuid.uuid4().hex, time.time(), temporary)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A program in a folder of its own, which must leave nothing behind."""
    made = make_program(tmp_path / "50% a=b,c#1 调优")
    yield made
    made.wait_until_nothing_is_left()
    shutil.rmtree(made.temporary)
