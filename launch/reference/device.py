"""The device a rank computes on: cpu (gloo), cuda (nccl) or npu (torch_npu, hccl).

The one module that knows how they differ in set-up, waiting, clocks and memory caps.
Attention kernels lie in `attention/blocks.py`, stores for offloaded activations in
`offload.py`, and observing memory in `memory.py`.
"""

from __future__ import annotations

import importlib
import time
from typing import Any, Protocol

import torch

from launch.reference import cpu_memory
from launch.reference.config import DeviceType

BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl"}


class Device(Protocol):
    """What the trainer needs from a device."""

    type: DeviceType

    @property
    def torch_device(self) -> torch.device:
        """Where tensors of this rank live."""
        ...

    @property
    def backend(self) -> str:
        """The process group's backend."""
        ...

    def synchronize(self) -> None:
        """Waits until the device has done all that it was given."""
        ...

    def mark(self) -> Any:
        """A point on the device's time line, for `seconds`."""
        ...

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two marks that the device has passed."""
        ...

    def cap_memory(self, limit_bytes: int, live_bytes: int, known_peak: int | None = None) -> None:
        """Lets the device's memory hold `limit_bytes` of this rank's tensors, and no more.

        live_bytes: bytes of tensors that exist now. known_peak: the most that the run has
        held at once, in bytes, where that has been observed.
        """
        ...

    def uncap_memory(self) -> None:
        """Takes the cap away, so that a failed rank can say what happened."""
        ...

    def used_bytes(self) -> int | None:
        """Bytes in use on the whole device, whoever holds them; None where it has no memory.

        More than an allocator knows of: buffers of NCCL, HCCL and CANN, and the context.
        """
        ...

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an exception says that this rank's memory is used up."""
        ...


class CpuDevice:
    """A rank on the CPU; tensor memory is the process's own."""

    type: DeviceType = "cpu"
    torch_device = torch.device("cpu")
    backend = "gloo"

    def __init__(self) -> None:
        cpu_memory.set_allocator()
        # oneDNN keeps compiled code and buffers for every shape it meets: with sequences of
        # all lengths more than the activations, outside of every count of tensor memory.
        torch.backends.mkldnn.set_flags(False)

    def synchronize(self) -> None:
        """Nothing to wait for: operators return when they are done."""

    def mark(self) -> float:
        """Seconds of the monotonic clock."""
        return time.perf_counter()

    def seconds(self, start: float, end: float) -> float:
        """Difference of two marks."""
        return end - start

    def cap_memory(self, limit_bytes: int, live_bytes: int, known_peak: int | None = None) -> None:
        """Caps the process's private memory so that `limit_bytes` of tensors fit."""
        cpu_memory.cap_tensors(limit_bytes, live_bytes, known_peak)

    def uncap_memory(self) -> None:
        """Lifts the process's cap."""
        cpu_memory.uncap()

    def used_bytes(self) -> None:
        """The host's memory is shared with all else that runs there."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """PyTorch's CPU allocator raises a plain RuntimeError; Python and numpy MemoryError."""
        return isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError)
            and ("can't allocate memory" in str(error) or "bad_alloc" in str(error))
        )


class AcceleratorDevice:
    """A rank on a CUDA or Ascend device, through `torch.accelerator`.

    Not run so far: the tests run on CPUs only.
    """

    def __init__(self, device_type: DeviceType, local_rank: int) -> None:
        if device_type == "npu":
            # Registers the npu device with torch; breaks `import torch` users elsewhere.
            importlib.import_module("torch_npu")
        self.type = device_type
        self.torch_device = torch.device(device_type, local_rank)
        self.backend = BACKENDS[device_type]
        torch.accelerator.set_device_index(local_rank)

    def synchronize(self) -> None:
        """Waits for all streams of the device."""
        torch.accelerator.synchronize()

    def mark(self) -> torch.Event:
        """An event on the current stream, so that ranges follow the device's own clock."""
        event = torch.Event(device=self.torch_device, enable_timing=True)
        event.record()
        return event

    def seconds(self, start: torch.Event, end: torch.Event) -> float:
        """Time between two events; the caller has synchronised."""
        return float(start.elapsed_time(end)) / 1e3

    def cap_memory(self, limit_bytes: int, live_bytes: int, known_peak: int | None = None) -> None:
        """Caps the caching allocator; tensors that live now count."""
        total = torch.accelerator.get_memory_info(self.torch_device)[1]
        share = min(1.0, limit_bytes / total)
        module = torch.get_device_module(self.torch_device)
        module.set_per_process_memory_fraction(share, self.torch_device)

    def uncap_memory(self) -> None:
        """Nothing to do: reporting a failure needs no device memory."""

    def used_bytes(self) -> int:
        """As `mem_get_info` of torch.cuda and torch.npu says: all but what is free."""
        free, total = torch.get_device_module(self.torch_device).mem_get_info(self.torch_device)
        return int(total - free)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """CUDA raises torch.OutOfMemoryError; torch_npu a RuntimeError that says so."""
        return isinstance(error, torch.OutOfMemoryError) or (
            isinstance(error, RuntimeError) and "out of memory" in str(error).lower()
        )


def open_device(device_type: DeviceType, local_rank: int) -> Device:
    """The device of this rank, set up."""
    if device_type == "cpu":
        return CpuDevice()
    return AcceleratorDevice(device_type, local_rank)
