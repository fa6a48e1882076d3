"""Numbers in out-of-memory messages, of all generations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autotune.measure.failures.oom_numbers import OomNumbers, parse_oom_numbers

MIB, GIB = 1 << 20, 1 << 30


def gib(amount: float) -> int:
    return round(amount * GIB)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (  # github.com/pytorch/pytorch/issues/16417: cached is what is not allocated
            "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; "
            "8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
            OomNumbers(
                tried=round(12.5 * MIB),
                capacity=gib(10.92),
                allocated=round(8.57 * MIB),
                free=gib(9.28),
                reserved=round(8.57 * MIB) + round(4.68 * MIB),
            ),
        ),
        (  # github.com/CompVis/stable-diffusion/issues/702
            "CUDA out of memory. Tried to allocate 192.00 MiB (GPU 0; 4.00 GiB total capacity; "
            "3.08 GiB already allocated; 0 bytes free; 3.47 GiB reserved in total by PyTorch)",
            OomNumbers(192 * MIB, 4 * GIB, gib(3.08), 0, gib(3.47)),
        ),
        (  # shared/data/logs C20
            "NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; "
            "49.47 GiB already allocated; 49.47 GiB current active; 1.32 GiB free; 57.55 GiB "
            "reserved in total by PyTorch) If reserved memory is >> allocated memory",
            OomNumbers(gib(5.03), gib(60.96), gib(49.47), gib(1.32), gib(57.55)),
        ),
        (  # github.com/Synthintel0/MyGirlGPT/issues/11: the typing error was PyTorch's
            "CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacty of 4.00 "
            "GiB of which 41.56 MiB is free. Including non-PyTorch memory, this process has 3.44 "
            "GiB memory in use. Of the allocated memory 2.58 GiB is allocated by PyTorch, and "
            "1.90 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory",
            OomNumbers(
                tried=32 * MIB,
                capacity=4 * GIB,
                allocated=gib(2.58),
                free=round(41.56 * MIB),
                reserved=gib(2.58) + round(1.90 * MIB),
                in_use=gib(3.44),
            ),
        ),
        (  # torch_npu csrc/core/npu/NPUWorkspaceAllocator.cpp
            "NPU out of memory. NPUWorkspaceAllocator tried to allocate 3.00 GiB(NPU 0; 60.96 GiB "
            "total capacity; 1.00 GiB free). If you want to reduce memory usage",
            OomNumbers(tried=3 * GIB, capacity=gib(60.96), free=GIB),
        ),
    ],
)
def test_every_form(text: str, numbers: OomNumbers) -> None:
    assert parse_oom_numbers(text) == numbers


@pytest.mark.parametrize("text", ["", "Failed to allocate memory.", "CUDA error: out of memory"])
def test_a_text_without_numbers(text: str) -> None:
    assert parse_oom_numbers(text) is None


def test_a_driver_that_does_not_tell_is_not_believed() -> None:
    text = (  # WSL: 2^64 bytes
        "CUDA out of memory. Tried to allocate 3.98 GiB. GPU 0 has a total capacity of 31.84 GiB "
        "of which 16.30 GiB is free. Including non-PyTorch memory, this process has "
        "17179869184.00 GiB memory in use. 17.51 GiB allowed; Of the allocated memory 6.74 GiB is "
        "allocated by PyTorch, and 7.02 GiB is reserved by PyTorch but unallocated."
    )
    numbers = parse_oom_numbers(text)
    assert numbers is not None
    assert numbers.in_use is None
    assert not numbers.is_held_by_others  # it met the limit that it had set itself


@pytest.mark.parametrize(
    ("capacity", "free", "in_use", "tried", "by_others"),
    [
        (31.36, 0.46, 16.63, 1.16, True),  # "Process 19239 has 14.26 GiB", a finding on a repo
        (44.39, 0.012, 36.30, 0.29, True),  # "Process 6324 has 8.06 GiB memory in use"
        (23.68, 0.245, 22.98, 0.86, False),  # a desktop's 458 MiB
        (39.56, 6.80, 36.61, 3.15, False),  # fragmentation: docs of an HPC centre
        (23.69, 7.11, 16.31, 8.0, False),  # 256 MiB of another process would not have helped
    ],
)
def test_who_held_it_where_the_process_is_counted(
    capacity: float, free: float, in_use: float, tried: float, by_others: bool
) -> None:
    numbers = OomNumbers(
        tried=gib(tried), capacity=gib(capacity), free=gib(free), in_use=gib(in_use)
    )
    assert numbers.is_held_by_others is by_others


@pytest.mark.parametrize(
    ("capacity", "free", "reserved", "tried", "by_others"),
    [
        (60.97, 0.019, 10.65, 0.02, True),  # github.com/vllm-project/vllm-ascend/issues/19
        (7.93, 0.025, 3.06, 0.02, True),  # github.com/nianticlabs/monodepth2/issues/236
        (60.96, 0.156, 58.88, 0.49, False),  # github.com/vllm-project/vllm-omni/issues/6400
        (60.96, 0.5, 50.0, 11.0, False),  # HCCL buffers and workspaces are the trial's own
        (60.96, 0.5, 20.0, 45.0, False),  # it asks for more than an empty device has
    ],
)
def test_who_held_it_where_only_the_allocator_is_counted(
    capacity: float, free: float, reserved: float, tried: float, by_others: bool
) -> None:
    numbers = OomNumbers(
        tried=gib(tried), capacity=gib(capacity), free=gib(free), reserved=gib(reserved)
    )
    assert numbers.is_held_by_others is by_others


def test_a_limit_that_the_process_set_itself_is_nobody_elses() -> None:
    numbers = OomNumbers(
        tried=2 * GIB, capacity=80 * GIB, free=30 * GIB, reserved=20 * GIB, allowed=21 * GIB
    )
    assert not numbers.is_held_by_others
    assert replace(numbers, allowed=None).is_held_by_others


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="free=-1"):
        OomNumbers(free=-1)
