"""Computing, communication and idleness of a step, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analyze.kineto_traces import Trace, missing

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_a_step_on_cuda(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(3, 0, 100)
        .op("aten::mm", 1, 60)
        .kernel("gemm", 10, 30, launched=2)
        .kernel("add", 25, 40, launched=3, stream=8)
        .kernel(NCCL, 35, 60, launched=4, stream=9)
        .kernel("Memcpy HtoD", 50, 70, launched=5, category="gpu_memcpy")
    )
    (step,) = trace.read(tmp_path).steps
    assert step.step == 3
    # Kernels cover 10-40; the copy adds 60-70, where it is alone: it hides no communication.
    assert step.computing_us == 40
    assert step.communication_us == 25
    assert step.overlapped_us == 5
    assert step.not_overlapped_us == 20
    assert step.preparing_us == 10
    assert step.free_us == 30
    assert step.stage_us == 90
    assert step.host_us == step.total_us == 100


def test_a_device_that_lags_behind_keeps_its_work_with_the_step(tmp_path: Path) -> None:
    """The host only launches: 10 us a step. The device computes 50 us for each."""
    trace = Trace()
    for number in range(3):
        trace.step(number, 10 * number, 10 * number + 10)
        trace.kernel("gemm", 5 + 50 * number, 55 + 50 * number, launched=10 * number + 1)
    profile = trace.read(tmp_path)
    assert [step.total_us for step in profile.steps] == [55, 50, 50]
    assert [step.computing_us for step in profile.steps] == [50, 50, 50]
    assert [step.host_us for step in profile.steps] == [55, 50, 50]


def test_a_step_on_cpu(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .op("aten::linear", 10, 40)
        .op("aten::addmm", 12, 38)
        .op("aten::mul", 35, 50, tid=7)
        .op("c10d::allreduce_", 50, 52)
        .range("gloo:all_reduce", 45, 70, tid=8)
        .op("aten::add", 60, 65)
    )
    profile = trace.read(tmp_path)
    (step,) = profile.steps
    assert profile.device == "cpu"
    assert step.computing_us == 45
    assert step.communication_us == 25
    assert step.overlapped_us == 10
    assert step.not_overlapped_us == 15
    assert step.preparing_us == 10
    assert step.free_us == 30
    assert step.host_us == 100


def test_communication_on_the_training_thread_is_no_computing(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 100).op("aten::x", 0, 80).op("c10d::broadcast_", 20, 50)
    (step,) = trace.read(tmp_path).steps
    assert step.computing_us == 50
    assert step.not_overlapped_us == 30


def test_without_step_marks_the_whole_trace_is_one_step(tmp_path: Path) -> None:
    profile = Trace().op("aten::a", 5, 15).op("aten::b", 20, 30).read(tmp_path)
    (step,) = profile.steps
    assert step.step is None
    assert step.total_us == 25
    assert step.host_us is None
    assert step.computing_us == 20
    assert "steps: no ProfilerStep ranges" in missing(profile)


def test_old_and_new_names_of_the_same_events(tmp_path: Path) -> None:
    """In traces of 2021 categories are capitalised, threads text, ranges operators."""
    old = (
        Trace()
        .span("Operator", "ProfilerStep#5", 0, 100, "100")
        .span("Operator", "aten::mm", 10, 20, "100")
        .span("Runtime", "cudaLaunchKernel", 12, 13, "100", correlation=1)
        .span("Kernel", "gemm", 30, 60, "stream 7", correlation=1)
        .span("Memset", "Memset (Device)", 60, 65, "stream 7", correlation=2)
    )
    new = (
        Trace()
        .step(5, 0, 100)
        .op("aten::mm", 10, 20)
        .kernel("gemm", 30, 60, launched=12)
        .kernel("Memset (Device)", 60, 65, category="gpu_memset")
    )
    folder = tmp_path / "new"
    folder.mkdir()
    before, after = old.read(tmp_path), new.read(folder)
    assert before.steps == after.steps
    assert before.operators == after.operators
    assert before.gaps == after.gaps
    assert before.steps[0].computing_us == 35


def test_times_since_the_epoch_keep_their_nanoseconds(tmp_path: Path) -> None:
    """Written as text by some tools, and too long for a float."""
    trace = Trace().step(1, 0, 10).op("aten::a", 0.001, 0.004)
    for event in trace.events:
        event["dur"] = f" {event['dur']:.3f}\t"
        event["ts"] = f"1736408883688177.{round(event['ts'] * 1000):03d}"
    (step,) = trace.read(tmp_path).steps
    assert step.computing_us == pytest.approx(0.003)
    assert step.preparing_us == pytest.approx(0.001)


def test_events_that_occur_twice_count_once(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 100).op("aten::mm", 1, 5).kernel("gemm", 10, 30, launched=2)
    trace.kernel(NCCL, 30, 40, launched=3)
    once = trace.read(tmp_path)
    trace.events *= 2
    twice = trace.read(tmp_path)
    assert twice.operators == once.operators
    assert twice.steps == once.steps
    assert twice.collectives == once.collectives


def test_rank_and_version(tmp_path: Path) -> None:
    trace = Trace().op("aten::a", 0, 1)
    assert trace.read(tmp_path).rank is None
    trace.header["distributedInfo"] = {"rank": 3, "world_size": 8}
    assert trace.read(tmp_path).rank == 3
    assert trace.read(tmp_path).version == "Kineto schema 1"
