"""The six phases of a step, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.analyze.profile import Profile
from autotune.measure.records import PHASES
from tests.analyze.kineto_traces import BACKWARD, Trace, missing

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)"


def phases(profile: Profile, position: int = 0) -> dict[str, float]:
    """The phases that have any time; all of them add up to the step."""
    step = profile.steps[position]
    assert step.phases_us is not None
    assert tuple(step.phases_us) == PHASES
    assert sum(step.phases_us.values()) == pytest.approx(step.total_us, abs=0.001)
    return {phase: time for phase, time in step.phases_us.items() if time}


def test_torchs_own_ranges_on_cuda(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 200)
        .range(LOADER, 0, 30)
        .op("aten::conv2d", 30, 40)
        .op("autograd::engine::evaluate_function: ConvBackward0", 40, 60, tid=BACKWARD)
        .op("aten::_foreach_norm", 70, 75)
        .range("Optimizer.step#SGD.step", 80, 110)
        .op("aten::add_", 82, 84)
        .kernel("last step's tail", 0, 10)
        .kernel("conv", 35, 60, launched=31)
        .kernel("conv_backward", 60, 100, launched=41, thread=BACKWARD)
        .kernel(NCCL, 90, 120, launched=55, thread=BACKWARD, stream=9)
        .kernel("norm", 120, 125, launched=71)
        .kernel("sgd", 130, 145, launched=82)
        .kernel("loss mean", 150, 160, launched=115)
    )
    assert phases(trace.read(tmp_path)) == {
        # 10-30: the device has nothing to do, the host is in the loader.
        "data_loading": 20,
        # the tail (its launch was not recorded), conv and its backward
        "forward_backward": 10 + 65,
        "communication": 20,
        # the norm between backward and the optimizer, the mean after it
        "post_processing": 15,
        "optimizer": 15,
        # 30-35, 125-130, 145-150, 160-200
        "scheduling": 55,
    }


def test_loading_that_the_device_does_not_wait_for_costs_nothing(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 100).range(LOADER, 5, 60).kernel("mm", 0, 100, launched=0)
    assert phases(trace.read(tmp_path)) == {"forward_backward": 100}


def test_gradient_accumulation_has_no_post_processing_before_the_last_backward(
    tmp_path: Path,
) -> None:
    trace = Trace().step(1, 0, 100)
    for start in (0, 30):
        trace.op("autograd::engine::evaluate_function: MmBackward0", start + 10, start + 20)
        trace.kernel("forward", start, start + 5, launched=start)
        trace.kernel("backward", start + 10, start + 20, launched=start + 10)
    trace.range("Optimizer.step#Adam.step", 60, 70).kernel("clip", 55, 58, launched=52)
    assert phases(trace.read(tmp_path))["post_processing"] == 3


def test_an_optimizer_at_the_start_of_a_step_is_not_followed_by_post_processing(
    tmp_path: Path,
) -> None:
    """Loops that call profiler.step() before the optimizer."""
    trace = (
        Trace()
        .step(1, 0, 100)
        .range("Optimizer.step#Adam.step", 0, 10)
        .kernel("adam", 5, 10, launched=1)
        .kernel("forward", 20, 40, launched=20)
        .op("autograd::engine::evaluate_function: MmBackward0", 40, 60)
        .kernel("backward", 41, 60, launched=41)
    )
    found = phases(trace.read(tmp_path))
    assert "post_processing" not in found
    assert found["forward_backward"] == 39


def test_ranges_of_the_users_own_come_first_and_the_inner_one_counts(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .range("data_loading", 0, 10)
        .range("forward_backward", 10, 60)
        .range("communication", 30, 40)
        .range("post_processing", 60, 65)
        .range("optimizer", 65, 90)
        .range("communication", 70, 75)
        .op("aten::mm", 12, 29)
        .op("aten::cat", 31, 39)
        .op("aten::norm", 61, 64)
    )
    assert phases(trace.read(tmp_path)) == {
        "data_loading": 10,
        "forward_backward": 40,
        "communication": 15,
        "post_processing": 5,
        "optimizer": 20,
        "scheduling": 10,
    }


def test_a_range_of_the_users_own_around_torchs(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 100).range("post_processing", 10, 40)
    trace.range("Optimizer.step#EMA.step", 20, 30).range("Optimizer.step#SGD.step", 50, 70)
    assert phases(trace.op("aten::a", 0, 5).read(tmp_path)) == {
        "forward_backward": 5,
        "post_processing": 30,
        "optimizer": 20,
        "scheduling": 45,
    }


def test_users_ranges_on_cuda_say_what_kernels_belong_to(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .range("data_loading", 0, 10)
        .range("optimizer", 40, 60)
        .kernel("Memcpy HtoD", 5, 8, launched=5, category="gpu_memcpy")
        .kernel("mm", 20, 45, launched=15)
        .kernel("my own optimizer", 50, 80, launched=41)
    )
    assert phases(trace.read(tmp_path)) == {
        "data_loading": 10,
        "forward_backward": 25,
        "optimizer": 30,
        "scheduling": 35,
    }


def test_torchs_own_ranges_on_cpu(tmp_path: Path) -> None:
    trace = (
        Trace()
        .step(1, 0, 100)
        .range(LOADER, 2, 20)
        .op("aten::stack", 5, 10)
        .op("aten::linear", 25, 40)
        .op("autograd::engine::evaluate_function: AddmmBackward0", 40, 60)
        .range("gloo:all_reduce", 55, 65, tid=8)
        .op("aten::norm", 66, 70)
        .range("Optimizer.step#AdamW.step", 72, 90)
        .op("aten::addcdiv_", 73, 85)
        .op("aten::mean", 92, 95)
    )
    assert phases(trace.read(tmp_path)) == {
        "data_loading": 18,
        "forward_backward": 35,
        "communication": 5,
        "post_processing": 7,
        "optimizer": 18,
        "scheduling": 17,
    }


def test_without_an_optimizer_range_it_is_said_where_its_time_is(tmp_path: Path) -> None:
    profile = Trace().step(1, 0, 10).op("aten::mm", 1, 9).read(tmp_path)
    assert phases(profile) == {"forward_backward": 8, "scheduling": 2}
    assert "no Optimizer.step range" in missing(profile)
