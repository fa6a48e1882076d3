"""One trial of a small Python program under a real supervisor, without Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autotune.ports import Deadlines
from launch.markers import SWEEP, TRIAL
from launch.node_job import NodeEnd, NodeJob
from tests.launch.conftest import PRELUDE, Run

QUICK = Deadlines(start_s=30, first_step_s=30, step_s=1.0, stop_grace_s=0.5)


def make_job(folder: Path, code: str, ranks: int = 1, **changes: Any) -> NodeJob:
    """A job whose ranks run `code`; RANK and `record(event)` are defined for it."""
    folder = folder / "trial 50% a=b,c#1 调优"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(f"{PRELUDE}\n{code}\n", encoding="utf-8")
    marker = f"{os.getpid()}-{folder.parent.name}"
    env = {"PATH": os.environ["PATH"], SWEEP: marker, TRIAL: marker}
    values: dict[str, Any] = {
        "folder": folder,
        "argv": (sys.executable, "-S", str(program)),
        "cwd": folder,
        "env": env,
        "marker": marker,
        "device": "cpu",
        "node": 0,
        "nodes": 1,
        "ranks_per_node": ranks,
        "deadlines": QUICK,
    }
    more = {**env, **changes.pop("env", {})}
    return NodeJob(**{**values, **changes, "env": more})


@contextmanager
def running(job: NodeJob) -> Iterator[Run]:
    """Runs the job; what still runs at the end is stopped."""
    run = Run(job)
    try:
        yield run
    finally:
        run.work.stop(job.marker)


def end_of(job: NodeJob, within_s: float = 20.0) -> NodeEnd:
    """Runs the job to its end."""
    with running(job) as run:
        return run.end(within_s)
