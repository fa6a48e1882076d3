"""Memory that ran out before the trial held any, or on the baseline: the machine is suspect."""

from __future__ import annotations

import pytest

from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.outcome import Status
from tests.measure.failures.made import error, of

FULL = (
    "RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; "
    "49.47 GiB already allocated; 49.47 GiB current active; 1.32 GiB free; 57.55 GiB reserved in "
    "total by PyTorch)"
)
NOTHING = (
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.96 GiB total capacity; "
    "0 bytes already allocated; 0 bytes current active; 1.00 GiB free; 0 bytes reserved in total "
    "by PyTorch)"
)
OPENING = (
    "Traceback (most recent call last):\n"
    '  File "/x/train.py", line 9, in <module>\n'
    '  File "/env/site-packages/torch/cuda/__init__.py", line 408, in set_device\n'
    "    torch._C._cuda_setDevice(device)\n"
    "RuntimeError: CUDA error: out of memory\n"
)
LATER = OPENING.replace("set_device", "synchronize")


def test_a_trial_that_filled_the_device_is_to_blame() -> None:
    found = of(RankEvidence(1, log=FULL))
    assert (found.kind, found.policy, found.status) == (
        FailureKind.DEVICE_OOM,
        Policy.CONSTRAINT,
        Status.OOM,
    )


@pytest.mark.parametrize(
    "evidence",
    [
        RankEvidence(1, log=NOTHING),
        RankEvidence(1, log=OPENING),
        RankEvidence(1, (error(1, "CUDA error: out of memory", "oom"),), held_bytes=0),
    ],
)
def test_before_any_allocation_of_the_trial(evidence: RankEvidence) -> None:
    found = of(evidence, device="cuda")
    assert (found.kind, found.policy) == (
        FailureKind.SUSPECT_MACHINE,
        Policy.SUSPECT_DEVICE,
    )
    assert found.status is Status.INFRASTRUCTURE  # the point may run again


@pytest.mark.parametrize(
    "evidence",
    [
        RankEvidence(1, log=LATER),  # nothing says that nothing was allocated
        RankEvidence(1, log=OPENING, steps=1),
        RankEvidence(1, log=OPENING, held_bytes=1 << 30),
        RankEvidence(1, (error(1, "out of memory", "oom"),), held_bytes=5),
    ],
)
def test_after_an_allocation_the_point_is_to_blame(evidence: RankEvidence) -> None:
    assert of(evidence, device="cuda").kind is FailureKind.DEVICE_OOM


def test_one_piece_larger_than_the_device_is_the_points() -> None:
    text = NOTHING.replace("Tried to allocate 2.00 GiB", "Tried to allocate 90.00 GiB")
    assert of(RankEvidence(1, log=text)).kind is FailureKind.DEVICE_OOM


@pytest.mark.parametrize(
    "text",
    [FULL, "RuntimeError: Malloc pin memory failed, host out of memory", "MemoryError: no more"],
)
def test_the_baseline_is_known_to_fit(text: str) -> None:
    found = of(RankEvidence(1, (error(1, text),), steps=3), is_baseline=True)
    assert (found.kind, found.policy) == (
        FailureKind.SUSPECT_MACHINE,
        Policy.SUSPECT_DEVICE,
    )


def test_the_device_and_the_host_are_named() -> None:
    found = of(RankEvidence(11, log=NOTHING, host="node7"))
    assert (found.device, found.host, found.rank) == ("NPU 0", "node7", 11)
    assert found.explanation.startswith("Rank 11 on node7 ran out of memory, but others held 60.0")


def test_on_a_cpu_the_hosts_memory_is_the_devices() -> None:
    text = "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    ranks = RankEvidence(0, (error(0, text, "oom"),), steps=2)
    assert of(ranks, device="cpu").status is Status.OOM
    on_npu = of(ranks, device="npu")
    assert (on_npu.kind, on_npu.status) == (FailureKind.HOST_OOM, Status.FAILED)


def test_a_device_that_others_hold_is_said_to_be_held() -> None:
    text = "EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process"
    assert of(RankEvidence(2, log=text)).summary == "rank 2 found its device held by others"
