"""Starting the processes of a node's ranks: one small port behind the supervisor."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

_FORK_RANKS = Path(__file__).parent / "rank" / "fork_ranks.py"
_REPORT_BYTES = 1 << 16

Environments = Mapping[int, Mapping[str, str]]
"""The complete environment of each rank, by the rank's number."""


class RankStarter(Protocol):
    """Starts ranks whose end `os.waitpid` of the supervisor can see.

    That is: a rank is a child of the supervisor, or an orphan below it, since the
    supervisor is a subreaper. Each has a session of its own.
    """

    def start(self, argv: Sequence[str], cwd: Path, environments: Environments) -> Iterator[int]:
        """Starts `argv` in `cwd` once for each environment, in their order.

        Yields for each rank a pipe with its stdout and stderr, which is the caller's. Raises
        `OSError` instead for the first rank for which that is impossible.
        """
        ...

    def note_end(self, pid: int) -> Sequence[int]:
        """Learns that a child of the supervisor has been reaped; the ranks that end with it."""
        ...

    @property
    def running(self) -> Mapping[int, int]:
        """The ranks that run, by the number of their process."""
        ...


def starter_for(preload: str | None) -> RankStarter:
    """The starter of a program that asks for this module to be imported first, or for none."""
    return ColdStarter() if preload is None else ForkStarter(preload)


class ColdStarter:
    """Starts each rank as a new process."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._rank_of: dict[int, int] = {}

    def start(self, argv: Sequence[str], cwd: Path, environments: Environments) -> Iterator[int]:
        """One process a rank."""
        for rank, env in environments.items():
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
            # Kept, since a Popen that is collected would reap the child behind our back.
            self._processes.append(process)
            self._rank_of[process.pid] = rank
            assert process.stdout is not None
            yield process.stdout.fileno()

    def note_end(self, pid: int) -> Sequence[int]:
        """The rank whose process it was, or none."""
        return _take(self._rank_of, pid)

    @property
    def running(self) -> Mapping[int, int]:
        """Each rank's own process."""
        return dict(self._rank_of)


class ForkStarter:
    """Starts one process, which imports a module and then forks into the ranks.

    preload: the module, see `autotune.ports.RankProgram`.
    """

    def __init__(self, preload: str) -> None:
        self._preload = preload
        self._process: subprocess.Popen[bytes] | None = None
        self._report = -1
        self._unborn: set[int] = set()
        self._rank_of: dict[int, int] = {}

    def start(self, argv: Sequence[str], cwd: Path, environments: Environments) -> Iterator[int]:
        """One process for all ranks, which become processes of their own later."""
        pipes = {rank: os.pipe() for rank in environments}
        self._report, report = os.pipe()
        os.set_blocking(self._report, False)
        writing = [end for _, end in pipes.values()]
        common = _common(environments)
        try:
            self._process = subprocess.Popen(
                [argv[0], str(_FORK_RANKS), *argv[1:]],  # the last words are for who reads `ps`
                cwd=cwd,
                # The ranks are found in /proc by what this process is started with.
                env=common,
                stdin=subprocess.PIPE,
                stdout=writing[0],
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
                pass_fds=[*writing, report],
            )
        finally:
            for descriptor in [*writing, report]:
                os.close(descriptor)
        self._unborn = set(environments)
        ranks = [
            {"rank": rank, "output": pipes[rank][1], "env": _beyond(common, env)}
            for rank, env in environments.items()
        ]
        self._order({"preload": self._preload, "argv": argv, "ranks": ranks, "report": report})
        for reading, _ in pipes.values():
            yield reading

    def note_end(self, pid: int) -> Sequence[int]:
        """The rank whose process it was, or the ranks that the one process has failed to start."""
        # A rank becomes our child when the one process has gone, so its pid is told by then.
        self._read_report()
        if self._process is not None and pid == self._process.pid:
            return sorted(self._unborn)
        return _take(self._rank_of, pid)

    def _order(self, order: Mapping[str, object]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pipe.write(json.dumps(order).encode("ascii"))
        except BrokenPipeError:
            return  # it has died already, and whoever waits for it sees how

    @property
    def running(self) -> Mapping[int, int]:
        """The ranks that were forked so far."""
        self._read_report()
        return dict(self._rank_of)

    def _read_report(self) -> None:
        try:
            told = os.read(self._report, _REPORT_BYTES)
        except BlockingIOError:
            return
        for line in told.splitlines():
            rank, pid = map(int, line.split())
            self._rank_of[pid] = rank
            self._unborn.discard(rank)


def _take(rank_of: dict[int, int], pid: int) -> Sequence[int]:
    """The rank of a process, once: the system may give its pid to another one later."""
    return [rank_of.pop(pid)] if pid in rank_of else []


def _common(environments: Environments) -> dict[str, str]:
    """The variables that all ranks have with the same value."""
    first, *others = environments.values()
    return {
        name: value
        for name, value in first.items()
        if all(env.get(name) == value for env in others)
    }


def _beyond(common: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in common}
