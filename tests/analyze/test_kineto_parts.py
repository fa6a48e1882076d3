"""Operators, collectives, memory and gaps, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.analyze.profile import Profile
from tests.analyze.kineto_traces import Trace, missing

NCCL = "ncclKernel_AllGather_RING_LL_Sum_float(ncclDevComm*)"
MESSAGE = {
    "Collective name": "_allgather_base",
    "In msg nelems": 1000,
    "Out msg nelems": 8000,
    "dtype": "BFloat16",
    "Process Group Name": "3",
    "Process Group Description": "mesh_dp",
}


def operator(profile: Profile, name: str) -> tuple[str, int, float, float | None, float | None]:
    (found,) = [each for each in profile.operators if each.name == name]
    return found.where, found.count, found.total_us, found.self_us, found.longest_us


def test_an_operators_own_time_is_without_what_it_called(tmp_path: Path) -> None:
    trace = (
        Trace()
        .op("aten::linear", 0, 10)
        .op("aten::addmm", 2, 9)
        .op("aten::expand", 3, 4)
        .op("aten::linear", 20, 24)
        .op("aten::addmm", 2, 5, tid=7)
        .kernel("gemm", 30, 40, launched=5)
        .kernel("gemm", 50, 53, launched=6)
    )
    profile = trace.read(tmp_path)
    assert operator(profile, "aten::linear") == ("host", 2, 14, 7, 10)
    assert operator(profile, "aten::addmm") == ("host", 2, 10, 9, 7)
    assert operator(profile, "gemm") == ("cuda", 2, 13, None, 10)
    totals = [each.total_us for each in profile.operators]
    assert totals == sorted(totals, reverse=True)


def test_an_operator_that_calls_itself_counts_once(tmp_path: Path) -> None:
    trace = Trace().op("aten::div", 0, 10).op("aten::div", 2, 8).op("aten::empty", 3, 4)
    profile = trace.read(tmp_path)
    assert operator(profile, "aten::div") == ("host", 1, 10, 9, 10)


def test_collectives_by_operation_group_and_step(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .step(2, 100, 200)
        .range("nccl:_allgather_base", 1, 2)
        .kernel("mm", 10, 30, launched=1)
        .kernel(NCCL, 20, 60, launched=2, stream=9, **MESSAGE)
        .kernel(NCCL, 70, 80, launched=3, stream=9, **MESSAGE)
        .kernel(NCCL, 120, 130, launched=101, stream=9, **MESSAGE)
        .kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 140, 150, launched=102)
    )
    profile = trace.read(tmp_path)
    first, second, plain = profile.collectives
    assert (first.operation, first.group) == ("nccl:_allgather_base", "3 (mesh_dp)")
    assert (first.step, first.count, first.elapsed_us, first.overlapped_us) == (1, 2, 50, 10)
    # Two gathers of 8000 elements of two bytes.
    assert first.size_bytes == 32_000
    assert first.bandwidth_gb_per_s == pytest.approx(32_000 / 50e-6 / 1e9)
    assert (second.step, second.count, second.elapsed_us) == (2, 1, 10)
    assert (plain.operation, plain.group, plain.size_bytes) == ("nccl:SendRecv", "", None)
    assert "sizes of some collectives" in missing(profile)


def test_collectives_on_cpu_are_the_process_groups_ranges(tmp_path: Path) -> None:
    trace = (
        Trace()
        .op("c10d::allreduce_", 0, 5)
        .range(
            "gloo:all_reduce", 2, 30, tid=8, **{"Input Dims": [[10, 3]], "Input type": ["float"]}
        )
        .op("aten::mm", 10, 20)
    )
    (collective,) = trace.read(tmp_path).collectives
    assert collective.operation == "gloo:all_reduce"
    assert (collective.elapsed_us, collective.overlapped_us) == (28, 10)
    assert collective.size_bytes == 120


def test_memory_over_time_and_what_held_its_peak(tmp_path: Path) -> None:
    trace = (
        Trace()
        .op("aten::linear", 0, 10)
        .op("aten::addmm", 1, 9)
        .op("aten::empty", 2, 4)
        .memory(0.5, 200, 1200, address=5)
        .memory(0.7, -200, 1000, address=5)
        .memory(3, 500, 1500, address=1)
        .op("aten::relu", 20, 30)
        .memory(25, 300, 1800, address=2)
        .memory(35, -500, 1300, address=1)
        .memory(50, 400, 1700, address=1)
        .memory(55, -400, 1300, address=1)
        .memory(60, -300, 1400, address=2)
        .memory(70, 64, 64, address=9, device=1)
    )
    memory = trace.read(tmp_path).memory
    assert memory is not None
    assert dict(memory.peaks_bytes) == {"cpu": 1800}
    assert memory.peak_at_us == 25
    curve = [1200, 1000, 1500, 1800, 1300, 1700, 1300, 1400]
    assert [point.allocated_bytes for point in memory.points] == curve
    assert [(h.by, h.size_bytes, h.allocated_at_us, h.released_at_us) for h in memory.holders] == [
        ("allocated before the trace began", 1000, None, None),
        ("aten::addmm", 500, 3, 35),
        ("aten::relu", 300, 25, 60),
    ]


def test_what_nobody_allocated_in_an_operator(tmp_path: Path) -> None:
    trace = Trace().range("Optimizer.step#Adam.step", 0, 10).memory(5, 100, 100, address=1)
    trace.memory(20, 100, 200, address=2)
    memory = trace.read(tmp_path).memory
    assert memory is not None
    assert [holder.by for holder in memory.holders] == [
        "Optimizer.step#Adam.step",
        "outside of any operator",
    ]


def test_a_long_curve_is_thinned_but_keeps_its_peak(tmp_path: Path) -> None:
    trace = Trace().op("aten::a", 0, 1)
    for at in range(10_000):
        trace.memory(at, 1, 5_000 + (at * 7919) % 4_999 + (at == 4_321) * 5_000, address=at)
    memory = trace.read(tmp_path).memory
    assert memory is not None
    assert len(memory.points) <= 2_000
    peak = max(memory.points, key=lambda point: point.allocated_bytes)
    assert peak.time_us == memory.peak_at_us == 4_321
    assert memory.peaks_bytes["cpu"] == peak.allocated_bytes


def test_old_traces_have_changes_of_memory_only(tmp_path: Path) -> None:
    trace = Trace().op("aten::a", 0, 100)
    for at, size in ((1, 600), (2, 600), (3, -600), (4, 100)):
        trace.memory(at, size, 0, address=0)
        del trace.events[-1]["args"]["Addr"], trace.events[-1]["args"]["Total Allocated"]
    profile = trace.read(tmp_path)
    assert profile.memory is not None
    assert dict(profile.memory.peaks_bytes) == {"cpu (growth since the trace began)": 1200}
    assert profile.memory.holders == ()
    assert "recorded changes only" in missing(profile)


def test_gaps_and_what_ran_around_them(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .step(2, 100, 200)
        .kernel("mm", 10, 30, launched=1)
        .kernel(NCCL, 25, 60, launched=2, stream=9)
        .kernel("add", 60, 70, launched=3)
        .kernel("relu", 150, 195, launched=110)
    )
    gaps = trace.read(tmp_path).gaps
    assert [(g.start_us, g.duration_us, g.cause, g.step) for g in gaps] == [
        (0, 10, "host", 1),
        (30, 30, "communication", 1),
        (70, 30, "host", 1),
        (100, 50, "host", 2),
        (195, 5, "host", 2),
    ]
    around = [(g.before, g.after) for g in gaps]
    assert around == [("", "mm"), ("mm", "add"), ("add", "relu"), ("add", "relu"), ("relu", "")]


def test_only_the_longest_gaps_are_listed(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 10_000)
    at = 0
    for length in range(1, 101):
        trace.op("aten::a", at, at + 1)
        at += 1 + length
    gaps = trace.step(2, 10_000, 10_001).read(tmp_path).gaps
    assert len(gaps) == 50
    assert min(gap.duration_us for gap in gaps) == 51
