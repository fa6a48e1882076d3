"""Programs that know nothing of autotune: one process a node, printed steps, watched memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.read import Voices, read_ranks
from autotune.ports import Deadlines, EndKind, Placement, RankExit, RankProgram, TrialRequest
from launch.markers import SWEEP, TRIAL
from launch.node_job import NodeJob, node_job

pytestmark = pytest.mark.ranks
Start = Callable[[NodeJob], Any]
MakeJob = Callable[..., NodeJob]

STEP = r"step (?P<step>\d+) took (?P<time_ms>[\d.]+) ms"
MIB = 1 << 20
QUIET = Deadlines(start_s=30, first_step_s=30, step_s=30, stop_grace_s=1.0)
PRELUDE = "import json, os, subprocess, sys, time\n"


@pytest.fixture
def make(tmp_path: Path) -> MakeJob:
    """A job of `ranks` ranks whose processes run `code`."""
    folder = tmp_path / "trial 50% a=b,c#1 调优"
    folder.mkdir()

    def of(code: str, ranks: int = 2, **keys: Any) -> NodeJob:
        program = folder / "program.py"
        program.write_text(PRELUDE + code + "\n", encoding="utf-8")
        marker = f"{os.getpid()}-{tmp_path.name}"
        env = {"PATH": os.environ["PATH"], SWEEP: marker, TRIAL: marker}
        job = NodeJob(
            folder=folder,
            argv=(sys.executable, "-S", str(program)),
            cwd=folder,
            env=env,
            marker=marker,
            device="cpu",
            node=0,
            nodes=1,
            ranks_per_node=ranks,
            deadlines=QUIET,
        )
        return replace(job, **keys)

    return of


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


PRINTS = "for n in range(1, 6): print(f'step {n} took {10 * n}.0 ms', flush=True)"


def test_one_process_a_node_is_told_of_all_its_ranks(make: MakeJob, start: Start) -> None:
    names = ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "RANK", "WORLD_SIZE")
    code = f"print({{name: os.environ.get(name) for name in {names}}})"
    job = make(code, ranks=4, processes="node", node=1, nodes=2)
    end = start(job).end()
    assert (end.kind, end.exits) == (EndKind.FINISHED, (RankExit(4, 0),))
    told = eval(job.log(4).read_text())
    assert told["MASTER_ADDR"]
    assert [told[name] for name in names if name != "MASTER_ADDR"] == ["2", "1", "4", None, None]


def test_printed_steps_are_records_of_every_rank(make: MakeJob, start: Start) -> None:
    job = make(PRINTS, processes="node", printed=STEP)
    assert start(job).end().kind is EndKind.FINISHED
    assert [one["step"] for one in records(job.printed_records)] == [1, 2, 3, 4, 5]
    ranks = read_ranks(job.folder, Voices(world_size=2, every_rank=False))
    assert [[step.time_s for step in rank.steps] for rank in ranks] == [
        pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])
    ] * 2
    assert all(rank.started for rank in ranks)
    assert job.log(0).read_text().count("took") == 5


def test_steps_of_one_rank_put_the_deadline_off_for_all(make: MakeJob, start: Start) -> None:
    code = (
        "if os.environ['RANK'] == '1':\n"
        " for n in range(1, 16): print(f'step {n} took 100.0 ms', flush=True); time.sleep(0.1)\n"
        "else: time.sleep(1.5)"
    )
    limits = replace(QUIET, first_step_s=1.2, step_s=0.9)
    assert start(make(code, printed=STEP, deadlines=limits)).end().kind is EndKind.FINISHED


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("time.sleep(60)", "first_step_s"),
        ("print('step 1 took 1.0 ms\\nstep 2 took 1.0 ms', flush=True); time.sleep(60)", "step_s"),
    ],
)
@pytest.mark.parametrize("processes", ["rank", "node"])
def test_a_program_that_falls_silent_is_ended(
    make: MakeJob, start: Start, code: str, limit: str, processes: str
) -> None:
    limits = replace(QUIET, **{limit: 0.7})
    job = make(code, printed=STEP, processes=processes, deadlines=limits)
    end = start(job).end(within_s=10.0)
    assert end.kind is EndKind.HUNG
    assert f"within {limit}=0.7 s" in end.reason


def test_a_program_that_records_by_itself_needs_no_lines(make: MakeJob, start: Start) -> None:
    """A torchrun of the user's: its ranks write one file, which speaks for all."""
    code = (
        "file = open(os.environ['AUTOTUNE_RECORDS'], 'a')\n"
        "for n in range(3): file.write(json.dumps({'event': 'step', 'step': n, 'time_s': 0.5}) "
        "+ '\\n')"
    )
    job = make(code, processes="node")
    assert start(job).end().kind is EndKind.FINISHED
    ranks = read_ranks(job.folder, Voices(2, every_rank=False))
    assert [len(rank.steps) for rank in ranks] == [3, 3]


def test_what_a_program_started_is_ended_with_it(make: MakeJob, start: Start) -> None:
    code = (
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True); sys.exit(3)"
    )
    job = make(code, processes="node", printed=STEP)
    end = start(job).end()
    assert (end.kind, end.reason) == (EndKind.RANK_FAILED, "rank 0 exited with code 3")
    assert not Path(f"/proc/{job.log(0).read_text().strip()}").exists()


def test_the_peak_of_each_rank_is_its_own(make: MakeJob, start: Start) -> None:
    """Also where every rank records its steps; the second holds 64 MiB more than the first."""
    code = (
        "held = bytearray((192 << 20) if os.environ['RANK'] == '1' else (128 << 20))\n"
        "with open(os.environ['AUTOTUNE_RECORDS'], 'a') as file:\n"
        " file.write(json.dumps({'event': 'start'}) + '\\n')\n"
        " file.write(json.dumps({'event': 'step', 'step': 0, 'time_s': 1.0}) + '\\n')\n"
        "print('held', flush=True); time.sleep(0.3)"
    )
    job = make(code, watches_memory=True)
    assert start(job).end().kind is EndKind.FINISHED
    first, second = read_ranks(job.folder, Voices(2))
    assert first.peak_device_bytes is not None
    assert second.peak_device_bytes is not None
    assert second.peak_device_bytes - first.peak_device_bytes == pytest.approx(
        64 * MIB, abs=4 * MIB
    )


def test_a_peak_shortly_before_the_end_is_seen(make: MakeJob, start: Start) -> None:
    """Of a program that says nothing meanwhile."""
    code = "time.sleep(0.4); held = bytearray(256 << 20); time.sleep(0.4); sys.exit(0)"
    job = make(code, ranks=1, processes="node", printed=STEP, watches_memory=True)
    assert start(job).end().kind is EndKind.FINISHED
    (rank,) = read_ranks(job.folder, Voices(1, every_rank=False))
    assert rank.peak_device_bytes is not None
    assert 256 * MIB < rank.peak_device_bytes < 300 * MIB


def test_processes_below_a_rank_are_counted_with_it(make: MakeJob, start: Start) -> None:
    child = "h = bytearray(48 << 20); print('step 1 took 1.0 ms', flush=True); t.sleep(0.5)"
    code = (
        (
            f"code = 'import time as t; {child}'\n"
            "subprocess.run([sys.executable, '-S', '-c', code])\n"
            "print('step 2 took 1.0 ms', flush=True)"
        )
        .replace("'step 1", '"step 1')
        .replace("ms', flush=True); t", 'ms", flush=True); t')
    )
    job = make(code, ranks=1, processes="node", printed=STEP, watches_memory=True)
    assert start(job).end().kind is EndKind.FINISHED
    (rank,) = read_ranks(job.folder, Voices(1, every_rank=False))
    assert rank.peak_device_bytes is not None
    assert 48 * MIB < rank.peak_device_bytes < 80 * MIB


def test_a_job_of_a_program_survives_its_way_to_the_supervisor(make: MakeJob) -> None:
    job = make("", processes="node", printed={"step": STEP}, watches_memory=True)
    assert NodeJob.from_json(job.to_json()) == job


def request(folder: Path, env: dict[str, str]) -> TrialRequest:
    program = RankProgram(("python", "x.py"), folder, env=env)
    return TrialRequest(0, 1, folder, program, Placement(1, 1, "cpu"), QUIET)


@pytest.mark.parametrize(
    ("sweeps", "programs", "expected"),
    [
        ({"PYTHONPATH": "/cann/python:/mine"}, {"PYTHONPATH": "/root:/mine"}, "/root:/mine:/cann"),
        ({"PYTHONPATH": "/cann/python"}, {}, "/cann"),
        ({}, {"PYTHONPATH": "/root"}, "/root"),
    ],
)
def test_the_python_path_of_setup_scripts_stays(
    tmp_path: Path, sweeps: dict[str, str], programs: dict[str, str], expected: str
) -> None:
    """CANN's set_env.sh puts its operator compiler there."""
    env = node_job(request(tmp_path, programs), 0, {"A": "1", **sweeps}, "mark").env
    assert env["PYTHONPATH"].startswith(expected)
    assert len(set(env["PYTHONPATH"].split(":"))) == len(env["PYTHONPATH"].split(":"))
    assert env["A"] == "1"
