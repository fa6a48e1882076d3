"""A profiler around the steps of a window, and what else these steps need."""

from __future__ import annotations

import torch.distributed as dist

from launch.rank.profiling import StepProfiler
from launch.reference.device import Device
from launch.reference.memory import MemoryMeter
from launch.reference.parallel import Group
from launch.reference.phases import PhaseTimer
from launch.reference.schedule import Step


class ProfileWindows:
    """Runs the profiler of this rank; on ranks that do not collect, only the wait at the end.

    limit_bytes: the cap on the device's memory; a profiler's own memory is not charged to it.
    """

    def __init__(
        self,
        profiler: StepProfiler,
        timer: PhaseTimer,
        device: Device,
        limit_bytes: int | None,
        meter: MemoryMeter,
        world: Group,
    ) -> None:
        self._profiler = profiler
        self._timer = timer
        self._device = device
        self._limit_bytes = limit_bytes
        self._meter = meter
        self._world = world

    def before(self, step: Step) -> None:
        """Starts the profiler before the first step of a window."""
        if step.window is None:
            return
        if step.is_first:
            if self._limit_bytes is not None:
                self._device.uncap_memory()
            self._profiler.start(step.window.options, step.number, step.window.request)
        self._timer.annotate = self._profiler.is_running

    def after(self, step: Step) -> None:
        """Stops it after the last one; all ranks wait until every profile is written.

        Else the next step, which may be scored, would wait for a rank that still writes.
        """
        if step.window is None:
            return
        if not step.is_last:
            self._profiler.next(step.number + 1)
            return
        self._profiler.stop()
        self._timer.annotate = False
        if self._world.handle is not None:
            dist.barrier(group=self._world.handle)
        if self._limit_bytes is not None:
            self._device.cap_memory(self._limit_bytes, self._meter.live, self._meter.peak_allocated)
