"""Starting the process of a rank: one small port behind the supervisor."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class StartedRank:
    """A rank's process. `output` is a pipe with its stdout and stderr, owned by the caller."""

    rank: int
    pid: int
    output: int


class RankStarter(Protocol):
    """Starts ranks whose end `os.waitpid` of the supervisor can see.

    That is: a rank is a child of the supervisor, or an orphan below it, since the
    supervisor is a subreaper. So ranks may also be forked from a warm template process.
    """

    def start(
        self, rank: int, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> StartedRank:
        """Starts a rank in a session of its own. Raises `OSError` when that is impossible."""
        ...


class ColdStarter:
    """Starts each rank as a new process."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, rank: int, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> StartedRank:
        """Starts `argv` in `cwd` with exactly `env`."""
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
        assert process.stdout is not None
        return StartedRank(rank, process.pid, process.stdout.fileno())
