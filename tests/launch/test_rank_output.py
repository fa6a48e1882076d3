"""A rank's output never blocks it, and never fills memory or disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune.ports import EndKind
from launch.node_job import NodeJob
from launch.rank_output import HEAD_BYTES, TAIL_BYTES, BoundedLog

MakeJob = Callable[..., NodeJob]
MIB = 1 << 20


def test_short_output_is_kept_whole(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "rank0.log", head=10, tail=8)
    log.write(b"12345")
    log.write(b"67890")
    log.close()
    log.close()
    assert (tmp_path / "rank0.log").read_bytes() == b"1234567890"


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_long_output_keeps_head_and_tail(tmp_path: Path, piece: int) -> None:
    """What is kept does not depend on the pieces in which the output came."""
    output = bytes(range(33, 127))
    log = BoundedLog(tmp_path / "rank0.log", head=10, tail=8)
    for first in range(0, len(output), piece):
        log.write(output[first : first + piece])
    log.close()
    # 94 bytes: 10 in the head, then segments of 4; the last two are kept.
    kept = (tmp_path / "rank0.log").read_bytes()
    assert kept == output[:10] + b"\n[... 76 bytes of output left out ...]\n" + output[86:]
    assert [path.name for path in tmp_path.iterdir()] == ["rank0.log"]


def test_a_full_disk_only_loses_output() -> None:
    log = BoundedLog(Path("/dev/full"))
    log.write(b"x" * 100)
    log.close()


@pytest.mark.ranks
def test_a_flood_without_newlines(make_job: MakeJob, start: Callable[[NodeJob], Any]) -> None:
    code = """
chunk = bytes(range(256)).replace(b"\\n", b"\\r") * 4096
for _ in range(50):
    sys.stdout.buffer.write(chunk); sys.stderr.buffer.write(b"")
sys.stdout.buffer.write(b"the last word"); sys.stdout.flush()
"""
    job = make_job(code, ranks=1)
    assert start(job).end(within_s=30.0).kind is EndKind.FINISHED
    kept = job.log(0).read_bytes()
    assert kept.startswith(bytes(range(10)))
    assert kept.endswith(b"the last word")
    assert HEAD_BYTES + TAIL_BYTES // 2 < len(kept) <= HEAD_BYTES + TAIL_BYTES + 100
