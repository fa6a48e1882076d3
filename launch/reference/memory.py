"""Peak memory of a rank's tensors.

On cpu the allocator counts nothing, so the first steps of a measuring trial run under
the profiler's memory events: every allocation and free of the rank's own thread with its
size. What is freed on other threads, such as those of collectives, is not seen, so the
peak repeats within 0.1 % on several ranks and to the byte on one. Observation starts
before the model is built, otherwise memory freed later would not be known.
On cuda and npu the caching allocator counts by itself.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from launch.reference.device import Device


class MemoryMeter(Protocol):
    """Observes a run's peak memory, in bytes; None where it is not known."""

    def start(self) -> None:
        """Observation starts; no tensor of the run exists yet."""
        ...

    def lap(self) -> None:
        """Brings the figures up to date and goes on observing, if it was.

        Called often, after every micro-batch, so that events do not pile up in memory.
        """
        ...

    def stop(self) -> None:
        """Observation ends; brings the figures up to date. May be repeated."""
        ...

    @property
    def peak_allocated(self) -> int | None:
        """Most bytes that tensors held at once."""
        ...

    @property
    def peak_reserved(self) -> int | None:
        """Most bytes that the allocator held at once; on cpu nothing is held back."""
        ...

    @property
    def live(self) -> int:
        """Bytes that tensors hold as of the last update; 0 if not known."""
        ...


class ProfiledMeter:
    """Counts the CPU allocator's events of the calling thread."""

    def __init__(self) -> None:
        self._running = False
        self._seen = False
        self._live = 0
        self._peak = 0

    def start(self) -> None:
        """Starts the profiler."""
        # The low-level interface: torch.profiler would build an object for every operator.
        from torch._C._profiler import (
            ProfilerActivity,
            ProfilerConfig,
            ProfilerState,
            RecordScope,
            _ExperimentalConfig,
        )
        from torch.autograd import _enable_profiler, _prepare_profiler

        activities = {ProfilerActivity.CPU}
        config = ProfilerConfig(
            ProfilerState.KINETO, False, True, False, False, False, _ExperimentalConfig()
        )
        _prepare_profiler(config, activities)
        _enable_profiler(config, activities, {RecordScope.USER_SCOPE})
        self._running = self._seen = True

    def lap(self) -> None:
        """Reads the events so far."""
        if self._running:
            self.stop()
            self.start()

    def stop(self) -> None:
        """Stops the profiler and adds up its events."""
        if not self._running:
            return
        from torch.autograd import _disable_profiler

        self._running = False
        self._add(_disable_profiler().events())

    def _add(self, events: list[Any]) -> None:
        changes = [
            (event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"
        ]
        for _, nbytes in sorted(changes, key=lambda change: change[0]):
            self._live += nbytes
            self._peak = max(self._peak, self._live)

    @property
    def peak_allocated(self) -> int | None:
        """Most bytes that tensors held at once."""
        return self._peak if self._seen else None

    @property
    def peak_reserved(self) -> int | None:
        """As allocated: the CPU allocator has no pool."""
        return self.peak_allocated

    @property
    def live(self) -> int:
        """Bytes that tensors hold as of the last update."""
        return self._live


class AllocatorMeter:
    """Asks the caching allocator of cuda or npu. Not run so far."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def start(self) -> None:
        """Forgets earlier peaks."""
        torch.accelerator.reset_peak_memory_stats(self._device)

    def lap(self) -> None:
        """Nothing to do: the allocator counts by itself."""

    def stop(self) -> None:
        """Nothing to do."""

    @property
    def peak_allocated(self) -> int | None:
        """Most bytes that tensors held at once."""
        return int(torch.accelerator.max_memory_allocated(self._device))

    @property
    def peak_reserved(self) -> int | None:
        """Most bytes that the caching allocator held at once."""
        return int(torch.accelerator.max_memory_reserved(self._device))

    @property
    def live(self) -> int:
        """Bytes that tensors hold now."""
        return int(torch.accelerator.memory_allocated(self._device))


def open_meter(device: Device) -> MemoryMeter:
    """The meter of a rank."""
    return ProfiledMeter() if device.type == "cpu" else AllocatorMeter(device.torch_device)
