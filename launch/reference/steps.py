"""Forward and backward of one global batch, for both models.

Each micro-batch's loss is its share of the global batch's mean, so that after summing
over ranks neither loss nor gradients depend on the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from launch.reference.attention.sequence_parallel import SequenceParallelAttention
from launch.reference.collectives import Collectives, ExchangeRows
from launch.reference.config import Config, DitConfig
from launch.reference.data.batches import (
    DitBatch,
    DitMicroBatch,
    EncoderRound,
    VlmBatch,
    VlmMicroBatch,
)
from launch.reference.device import Device
from launch.reference.models.dit import TinyDit, squared_error
from launch.reference.models.vlm import TinyVlm
from launch.reference.offload import ActivationOffload, storage_key
from launch.reference.optimizer import FlatParameters
from launch.reference.parallel import Group, Groups
from launch.reference.spill import open_store


class Model(Protocol):
    """A model with its parallel forward and backward."""

    parameters: FlatParameters
    module: nn.Module

    def forward_backward(self, batch: Any, after_micro_batch: Callable[[], None]) -> Tensor:
        """Adds to the gradients; this rank's share of the loss."""
        ...


def build_model(config: Config, groups: Groups, collectives: Collectives, device: Device) -> Model:
    """The configuration's model, the same on every rank."""
    torch.manual_seed(config.training.seed)
    kind = DitTraining if isinstance(config.model, DitConfig) else VlmTraining
    return kind(config, groups, collectives, device)


def _offload(config: Config, parameters: FlatParameters, device: Device) -> ActivationOffload:
    blocks = config.features.offload_blocks
    store = open_store(device) if blocks else None
    return ActivationOffload(blocks, store, frozenset({storage_key(parameters.values)}))


class VlmTraining:
    """Encoder rounds, each followed by the micro-batches that need its features."""

    def __init__(
        self, config: Config, groups: Groups, collectives: Collectives, device: Device
    ) -> None:
        self._chunk = config.features.loss_chunk_size
        self._width = config.model.hidden_size
        self._groups = groups
        self._collectives = collectives
        self._device = device.torch_device
        self.module = TinyVlm(config.model).to(self._device)  # type: ignore[arg-type]
        self.parameters = FlatParameters(self.module)
        self._offload = _offload(config, self.parameters, device)
        self._decoder_attention = SequenceParallelAttention(
            groups.ulysses, groups.ring, collectives, causal=True
        )
        alone = Group((groups.rank,), 0, None)
        self._encoder_attention = SequenceParallelAttention(
            groups.encoder, alone, collectives, causal=False
        )

    def forward_backward(self, batch: VlmBatch, after_micro_batch: Callable[[], None]) -> Tensor:
        """Runs all rounds of a global batch."""
        total = torch.zeros((), device=self._device)
        for encoder_round in batch.rounds:
            total += self._round(encoder_round, batch.facts.loss_terms, after_micro_batch)
        return total

    def _round(
        self, encoder_round: EncoderRound, loss_terms: int, after_micro_batch: Callable[[], None]
    ) -> Tensor:
        plan = encoder_round.plan
        rows = self._encode(encoder_round).index_select(0, self._put(plan.send_rows))
        features: Tensor = ExchangeRows.apply(
            rows, plan.send_counts, plan.receive_counts, self._groups.world, self._collectives
        )
        # The decoder's backward of all micro-batches ends at copies of the features, so
        # that the encoder has one backward, with their gradients together.
        gradient = torch.zeros_like(features)
        total = torch.zeros((), device=self._device)
        for index, micro_batch in enumerate(encoder_round.micro_batches):
            chosen = self._put(plan.feature_rows[index])
            part = features.detach().index_select(0, chosen).requires_grad_()
            places = self._put(plan.feature_places[index])
            total += self._micro_batch(micro_batch, part, places, loss_terms)
            gradient.index_copy_(0, chosen, part.grad)
            after_micro_batch()
        # As features.backward(gradient), whose check of shapes would import sympy: 0.3 s and
        # 39 MiB in every rank.
        (features * gradient).sum().backward()
        return total

    def _encode(self, encoder_round: EncoderRound) -> Tensor:
        """Features of the rank's images, (images * local patches, decoder hidden_size)."""
        if not encoder_round.lengths:
            # Takes part in the exchange, and in its backward, with no rows.
            return torch.zeros((0, self._width), device=self._device, requires_grad=True)
        features = self.module.encoder(
            self._put(encoder_round.patches),
            self._put(encoder_round.coordinates),
            lambda qkv: self._encoder_attention(qkv, encoder_round.lengths),
        )
        return features.flatten(0, 1)

    def _micro_batch(
        self, micro_batch: VlmMicroBatch, features: Tensor, places: Tensor, loss_terms: int
    ) -> Tensor:
        decoder = self.module.decoder
        hidden = decoder.hidden_states(
            self._put(micro_batch.tokens),
            self._put(micro_batch.positions),
            features,
            places,
            self._decoder_attention,
            self._offload,
        )
        loss = decoder.loss(hidden, self._put(micro_batch.labels), self._chunk) / loss_terms
        del hidden
        loss.backward()
        self._offload.after_backward()
        return loss.detach()

    def _put(self, array: Any) -> Tensor:
        return torch.from_numpy(array).to(self._device)


class DitTraining:
    """Micro-batches one after the other."""

    def __init__(
        self, config: Config, groups: Groups, collectives: Collectives, device: Device
    ) -> None:
        self._device = device.torch_device
        self.module = TinyDit(config.model).to(self._device)  # type: ignore[arg-type]
        self.parameters = FlatParameters(self.module)
        self._offload = _offload(config, self.parameters, device)
        self._attention = SequenceParallelAttention(
            groups.ulysses, groups.ring, collectives, causal=False
        )

    def forward_backward(self, batch: DitBatch, after_micro_batch: Callable[[], None]) -> Tensor:
        """Runs all micro-batches of a global batch."""
        total = torch.zeros((), device=self._device)
        for micro_batch in batch.micro_batches:
            total += self._micro_batch(micro_batch, batch.facts.loss_terms)
            after_micro_batch()
        return total

    def _micro_batch(self, micro_batch: DitMicroBatch, loss_terms: int) -> Tensor:
        clean, noise = self._put(micro_batch.clean), self._put(micro_batch.noise)
        times = self._put(micro_batch.times)
        predicted = self.module(
            torch.lerp(clean, noise, times.view(-1, 1, 1)),
            times,
            self._put(micro_batch.coordinates),
            lambda qkv: self._attention(qkv, micro_batch.lengths),
            self._offload,
        )
        valid = self._put(micro_batch.valid)
        loss = squared_error(predicted, noise - clean, valid) / loss_terms
        del predicted
        loss.backward()
        self._offload.after_backward()
        return loss.detach()

    def _put(self, array: Any) -> Tensor:
        return torch.from_numpy(array).to(self._device)
