"""The training loop: which steps are made, and their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.rank.commands import Commands
from launch.rank.profiling import StepProfiler
from launch.rank.recorder import Recorder
from launch.reference.config import Config
from launch.reference.control import Control
from launch.reference.data.loader import open_loader
from launch.reference.device import Device
from launch.reference.layout import Layout
from launch.reference.memory import MemoryMeter
from launch.reference.parallel import Groups
from launch.reference.profile_windows import ProfileWindows
from launch.reference.run import Run
from launch.reference.schedule import Schedule, Step, StepKind


def train(
    config: Config,
    layout: Layout,
    groups: Groups,
    device: Device,
    folder: Path,
    meter: MemoryMeter,
    recorder: Recorder,
) -> None:
    """Makes all steps, records each, and prints a line a step on rank 0."""
    run = _open_run(config, layout, groups, device, folder, meter)
    limit = config.device.memory_bytes
    profiler = StepProfiler(device.type, groups.rank, layout.world_size, recorder)
    windows = ProfileWindows(profiler, run.timer, device, limit, meter, groups.world)
    memory = StepMemory(device, meter, limit)
    schedule = Schedule.of(config)
    control = None
    if config.measurement is not None:
        control = Control(Commands(recorder.folder, recorder), groups.world)
    while (step := schedule.next()) is not None:
        run.collectives.settle = step.kind is StepKind.MEMORY
        windows.before(step)
        record, heard = run.step(control.look() if control else None)
        windows.after(step)
        record |= memory.after(step)
        record["profiled"] = step.kind is not StepKind.PLAIN
        recorder.step({"step": step.number, **record})
        if groups.rank == 0:
            _print_step(step.number, record)
        if control is not None:
            control.obey(heard, schedule)


def _open_run(
    config: Config,
    layout: Layout,
    groups: Groups,
    device: Device,
    folder: Path,
    meter: MemoryMeter,
) -> Run:
    """The run before its first step, observed and capped as configured."""
    observed = config.measurement.memory_steps if config.measurement else 0
    limit = config.device.memory_bytes
    if observed or device.type != "cpu":
        meter.start()
    loader = open_loader(config, layout, groups.rank, folder)
    if limit is not None:
        # The loader's threads and buffers are no device memory; they are there by now.
        loader.wait()
        device.cap_memory(limit, 0)
    return Run(config, groups, device, loader, meter)


class StepMemory:
    """The memory figures of a step's record, in bytes."""

    def __init__(self, device: Device, meter: MemoryMeter, limit_bytes: int | None) -> None:
        self._device = device
        self._meter = meter
        self._limit_bytes = limit_bytes
        self._device_peak = 0

    def after(self, step: Step) -> dict[str, int | None]:
        """Brings the figures up to date; the observation ends with the last memory step."""
        if step.kind is StepKind.MEMORY and step.is_last:
            self._meter.stop()
            if self._limit_bytes is not None:
                # The events that the profiler kept were charged so far.
                self._device.cap_memory(
                    self._limit_bytes, self._meter.live, self._meter.peak_allocated
                )
        else:
            self._meter.lap()
        peaks = {
            "peak_allocated_bytes": self._meter.peak_allocated,
            "peak_reserved_bytes": self._meter.peak_reserved,
        }
        used = self._device.used_bytes()
        if used is None:
            return peaks
        if step.kind is not StepKind.PROFILE:  # a profiler's buffers are no part of the training
            self._device_peak = max(self._device_peak, used)
        return {**peaks, "peak_device_bytes": self._device_peak}


def _print_step(step: int, record: dict[str, Any]) -> None:
    peak = record["peak_allocated_bytes"]
    memory = "" if peak is None else f"  peak {peak / 2**20:.1f} MiB"
    print(  # noqa: T201 (the trainer's own output)
        f"step {step}  {record['time_s']:.3f} s  loss {record['loss']:.4f}{memory}", flush=True
    )
