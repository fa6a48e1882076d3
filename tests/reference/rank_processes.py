"""Starts ranks as torchrun would, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_ranks(
    arguments: list[str], count: int, folder: Path, cache: Path, timeout_s: float = 120
) -> list[subprocess.CompletedProcess[str]]:
    """Runs `python ARGUMENTS` as `count` ranks with records in `folder`/rank<k>.jsonl."""
    port = free_port()
    running = []
    for rank in range(count):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(cache),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "AUTOTUNE_RECORDS": str(folder / f"rank{rank}.jsonl"),
        }
        command = [sys.executable, *arguments]
        running.append(
            subprocess.Popen(
                command,
                env=environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ended = []
        for process in running:
            out, err = process.communicate(timeout=timeout_s)
            ended.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
        return ended
    finally:
        for process in running:
            process.kill()
            process.wait()
