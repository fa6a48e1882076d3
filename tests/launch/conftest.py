"""Jobs for a supervisor whose ranks are small Python programs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.ports import Deadlines
from launch.markers import SWEEP, TRIAL
from launch.node_job import NodeEnd, NodeJob
from launch.node_work import NodeWork

QUIET = Deadlines(start_s=60, first_step_s=60, step_s=60, stop_grace_s=1.0)

MakeJob = Callable[..., NodeJob]


@pytest.fixture(params=["cold", "forked"])
def preload(request: pytest.FixtureRequest) -> str | None:
    """What a job imports before its ranks run, so that every test holds for both starters."""
    return {"cold": None, "forked": "json"}[request.param]


@pytest.fixture
def make_job(tmp_path: Path, preload: str | None) -> MakeJob:
    """A job whose ranks run `code`; RANK and `record(event)` are defined for it."""
    folder = tmp_path / "trial 50% a=b,c#1 调优"
    folder.mkdir()

    def make(code: str, ranks: int = 2, deadlines: Deadlines = QUIET) -> NodeJob:
        program = folder / "program.py"
        program.write_text(f"{PRELUDE}\n{code}\n", encoding="utf-8")
        words = ("-S", str(program)) if preload is None else ("-m", "program")
        marker = f"{os.getpid()}-{folder.parent.name}"
        return NodeJob(
            folder=folder,
            argv=(sys.executable, *words),
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONDONTWRITEBYTECODE": "1",
                SWEEP: marker,
                TRIAL: marker,
            },
            marker=marker,
            device="cpu",
            node=0,
            nodes=1,
            ranks_per_node=ranks,
            deadlines=deadlines,
            preload=preload,
        )

    return make


PRELUDE = """
import json, os, signal, subprocess, sys, time
RANK = int(os.environ["RANK"])
def record(event, **values):
    with open(os.environ["AUTOTUNE_RECORDS"], "a") as file:
        file.write(json.dumps({"event": event, **values}) + "\\n")
"""


class Run:
    """A job that runs in a thread, as it does in an actor."""

    def __init__(self, job: NodeJob) -> None:
        self.job = job
        self.work = NodeWork()
        self._end: list[NodeEnd] = []
        meeting = self.work.lease_meeting("127.0.0.1")
        self._thread = threading.Thread(
            target=lambda: self._end.append(self.work.run(job, meeting)), daemon=True
        )
        self._thread.start()

    def end(self, within_s: float = 20.0) -> NodeEnd:
        self._thread.join(within_s)
        assert self._end, f"the trial has not ended within {within_s} s"
        return self._end[0]


@pytest.fixture
def start() -> Iterator[Callable[[NodeJob], Run]]:
    runs: list[Run] = []

    def start_one(job: NodeJob) -> Run:
        runs.append(Run(job))
        return runs[-1]

    yield start_one
    for run in runs:
        run.work.stop(run.job.marker)
