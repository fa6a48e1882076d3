"""The training loop: steps, their phases and their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from launch.rank.recorder import Recorder
from launch.reference.collectives import Collectives
from launch.reference.config import Config
from launch.reference.data.batches import BatchFacts
from launch.reference.data.loader import Loader, open_loader
from launch.reference.device import Device
from launch.reference.layout import Layout
from launch.reference.memory import MemoryMeter, open_meter
from launch.reference.optimizer import AdamW
from launch.reference.parallel import Groups
from launch.reference.phases import PhaseTimer
from launch.reference.steps import build_model


class Run:
    """One rank's training run: the model, its optimizer and its data."""

    def __init__(
        self,
        config: Config,
        groups: Groups,
        device: Device,
        loader: Loader,
        meter: MemoryMeter,
    ) -> None:
        self._config = config
        self._groups = groups
        self._timer = PhaseTimer(device)
        self.collectives = Collectives(self._timer)
        self._meter = meter
        self._loader = loader
        self.model = build_model(config, groups, self.collectives, device)
        self._optimizer = AdamW(self.model.parameters, config.training)

    def gradients(self) -> tuple[torch.Tensor, BatchFacts]:
        """The next global batch's loss share of this rank; the gradients are the whole's."""
        timer = self._timer
        with timer.phase("data_loading"):
            batch = self._loader.next()
        with timer.phase("forward_backward"):
            loss = self.model.forward_backward(batch, self._meter.lap)
        self.model.parameters.reduce_gradients(self.collectives, self._groups.world)
        return loss, batch.facts

    def step(self) -> dict[str, Any]:
        """Trains on the next global batch; the step's record without memory."""
        timer = self._timer
        timer.begin_step()
        loss, facts = self.gradients()
        with timer.phase("post_processing"):
            self.model.parameters.clip_gradients(self._config.training.max_grad_norm)
        with timer.phase("optimizer"):
            self._optimizer.step()
        # The sum over all ranks is also what ends a step on all of them together.
        with timer.phase("post_processing"):
            self.collectives.all_reduce_sum(loss, self._groups.world)
            value = loss.item()
        seconds, phases = timer.end_step()
        return {
            "time_s": seconds,
            "samples": facts.samples,
            "tokens": facts.tokens,
            "loss": value,
            "phases_s": phases,
        }


def gradients_of_global_batch(
    config: Config, layout: Layout, groups: Groups, device: Device, folder: Path
) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients, by parameter name, of the first global batch. Collective."""
    loader = open_loader(config, layout, groups.rank, folder)
    run = Run(config, groups, device, loader, open_meter(device))
    loss, _ = run.gradients()
    run.collectives.all_reduce_sum(loss, groups.world)
    parameters = run.model.module.named_parameters()
    return loss.item(), {name: value.grad for name, value in parameters if value.grad is not None}


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
    observed = config.measurement.memory_steps if config.measurement else 0
    limit = config.device.memory_bytes
    if observed or device.type != "cpu":
        meter.start()
    loader = open_loader(config, layout, groups.rank, folder)
    if limit is not None:
        # The loader's threads and buffers are no device memory; they are there by now.
        loader.wait()
        device.cap_memory(limit, 0)
    run = Run(config, groups, device, loader, meter)
    for step in range(config.training.steps):
        run.collectives.settle = step < observed
        record = run.step()
        if step == observed - 1:
            meter.stop()
            if limit is not None:
                # The events that the profiler kept were charged so far.
                device.cap_memory(limit, meter.live, meter.peak_allocated)
        else:
            meter.lap()
        record["peak_allocated_bytes"] = meter.peak_allocated
        record["peak_reserved_bytes"] = meter.peak_reserved
        record["profiled"] = step < observed
        recorder.step({"step": step, **record})
        if groups.rank == 0:
            _print_step(step, record)


def _print_step(step: int, record: dict[str, Any]) -> None:
    peak = record["peak_allocated_bytes"]
    memory = "" if peak is None else f"  peak {peak / 2**20:.1f} MiB"
    print(  # noqa: T201 (the trainer's own output)
        f"step {step}  {record['time_s']:.3f} s  loss {record['loss']:.4f}{memory}", flush=True
    )
