"""One rank's training run: the model, its optimizer, its data, and how a step is made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

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
    """Makes steps, each on the next global batch."""

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
        self.timer = PhaseTimer(device)
        self.collectives = Collectives(self.timer)
        self._meter = meter
        self._loader = loader
        self.model = build_model(config, groups, self.collectives, device)
        self._optimizer = AdamW(self.model.parameters, config.training)

    def gradients(self) -> tuple[torch.Tensor, BatchFacts]:
        """The next global batch's loss share of this rank; the gradients are the whole's."""
        timer = self.timer
        with timer.phase("data_loading"):
            batch = self._loader.next()
        with timer.phase("forward_backward"):
            loss = self.model.forward_backward(batch, self._meter.lap)
        self.model.parameters.reduce_gradients(self.collectives, self._groups.world)
        return loss, batch.facts

    def step(self, word: float | None = None) -> tuple[dict[str, Any], float]:
        """Trains on the next global batch; the step's record without memory.

        word: a number to be summed over all ranks along with the loss. The sum is returned,
        0 without one.
        """
        timer = self.timer
        timer.begin_step()
        loss, facts = self.gradients()
        grad_norm = self._update()
        with timer.phase("post_processing"):
            value, heard = self._sum(loss, word)
        seconds, phases = timer.end_step()
        record = {
            "time_s": seconds,
            "samples": facts.samples,
            "tokens": facts.tokens,
            "loss": value,
            "grad_norm": grad_norm,
            "phases_s": phases,
        }
        if not math.isfinite(grad_norm):
            record["skipped"] = True
        return record, heard

    def _update(self) -> float:
        """The optimizer's step, unless a gradient is not finite; the gradients' norm."""
        with self.timer.phase("post_processing"):
            norm = self.model.parameters.clip_gradients(self._config.training.max_grad_norm)
        with self.timer.phase("optimizer"):
            if math.isfinite(norm):
                self._optimizer.step()
            else:
                self._optimizer.skip()
        return norm

    def _sum(self, loss: torch.Tensor, word: float | None) -> tuple[float, float]:
        """Both summed over all ranks, which is also what ends a step on all of them together."""
        if word is None:
            self.collectives.all_reduce_sum(loss, self._groups.world)
            return loss.item(), 0.0
        both = torch.stack([loss, loss.new_full((), word)])
        self.collectives.all_reduce_sum(both, self._groups.world)
        value, heard = both.tolist()
        return value, heard


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
