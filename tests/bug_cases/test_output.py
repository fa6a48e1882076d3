"""Case 45 and its kin: what ranks print blocks no rank and fills neither memory nor disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Batch
from autotune.ports import Deadlines, EndKind
from launch.markers import ROLE, SUPERVISOR_ROLE, TRIAL
from launch.node_job import NodeJob
from launch.printed_records import PrintedRecords
from launch.process_tree import environment_of, marked

from .supervised import QUICK, end_of, make_job, running

MIB = 1 << 20
LOG_BYTES = 6 * MIB
SUPERVISOR_BYTES = 64 * MIB

FLOOD = r"""
import threading
def flood(descriptor, piece, total):
    for _ in range(total // len(piece)):
        os.write(descriptor, piece)
MIB = 1 << 20
noise = b"INFO 12:30:01 nothing of importance, but a lot of it\n" * 1000
out = threading.Thread(target=flood, args=(1, noise, 12 * MIB))
err = threading.Thread(target=flood, args=(2, bytes(range(256)) * 256, 12 * MIB))
out.start(); err.start(); out.join(); err.join()
flood(1, b"x" * 65536, 12 * MIB)
flood(1, b"step 1 of 9\r" * 5000, 6 * MIB)
print("\nthe last word", flush=True)
"""


def peak_of(job: NodeJob, seconds: float) -> tuple[Any, int]:
    """How a trial ends, and the most that its supervisor held meanwhile, in bytes."""
    peak = 0
    with running(job) as run:
        until = time.monotonic() + seconds
        while not run._end and time.monotonic() < until:
            for process in marked(TRIAL, job.marker):
                if environment_of(process).get(ROLE) == SUPERVISOR_ROLE:
                    peak = max(peak, high_water_mark(process.pid))
            time.sleep(0.02)
        return run.end(1.0), peak


def high_water_mark(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.ranks
@pytest.mark.parametrize("printed", [None, "megatron", "json"])
def test_a_flood_of_every_kind_ends_well(tmp_path: Path, printed: str | None) -> None:
    """Noise, binary bytes, a line without an end, a bar: also where the lines are read."""
    limits = Deadlines(start_s=60, first_step_s=60, step_s=60)
    job = make_job(tmp_path, FLOOD, printed=printed, deadlines=limits)
    end, peak = peak_of(job, 60)
    assert end.kind is EndKind.FINISHED
    assert 0 < peak < SUPERVISOR_BYTES
    log = job.log(0).read_bytes()
    assert len(log) < LOG_BYTES
    assert log.endswith(b"the last word\n")


@pytest.mark.ranks
@pytest.mark.parametrize("printed", [None, "megatron"])
def test_zero_bytes_for_ever_are_no_progress(tmp_path: Path, printed: str | None) -> None:
    code = "record('start'); record('step')\nwhile True: os.write(1, bytes(65536))"
    job = make_job(tmp_path, code, ranks=2, printed=printed)
    end, peak = peak_of(job, 15)
    assert end.kind is EndKind.HUNG
    assert 0 < peak < SUPERVISOR_BYTES
    assert all(job.log(rank).stat().st_size < LOG_BYTES for rank in job.ranks)


@pytest.mark.ranks
def test_a_question_gets_no_answer_and_is_not_waited_for(tmp_path: Path) -> None:
    job = make_job(tmp_path, "record('start'); input('go on? [y/N] ')")
    end = end_of(job, 10)
    assert (end.kind, end.reason) == (EndKind.RANK_FAILED, "rank 0 exited with code 1")
    assert "EOFError" in job.log(0).read_text()


@pytest.mark.ranks
def test_a_rank_may_close_its_output(tmp_path: Path) -> None:
    code = "os.close(1); os.close(2); record('start'); record('step'); time.sleep(0.5)"
    assert end_of(make_job(tmp_path, code, deadlines=QUICK)).kind is EndKind.FINISHED


def test_many_printed_steps_cost_no_more_each_than_few(tmp_path: Path) -> None:
    records = PrintedRecords(tmp_path / "p.jsonl", format_of("megatron", "x"), Batch())
    before = time.process_time()
    for step in range(1, 701):
        line = f" iteration {step:8d}/ 9999 | elapsed time per iteration (ms): 9.0 | loss: 1.0 |\n"
        records.feed(0, line.encode())
    records.close()
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 700
    assert time.process_time() - before < 1.0
