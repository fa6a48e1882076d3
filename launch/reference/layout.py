"""Which rank does what: pure arithmetic on the number of ranks.

Ranks of one sequence-parallel (SP) group are neighbours: rank = dp_index * sp +
sp_index, and within it sp_index = ring_index * ulysses + ulysses_index, as in USP
(arXiv 2405.07719). The encoder of a vlm uses the same ranks in groups of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from launch.reference.config import Config, VlmConfig
from launch.reference.schema import ConfigError


@dataclass(frozen=True)
class SequenceSplit:
    """How a padded sequence is spread over the ranks of an SP group.

    causal: attention is causal, so a ring takes the zigzag split that gives every ring
        rank the same work: ring rank r of n holds chunks r and 2n-1-r.
    """

    ulysses: int
    ring: int
    causal: bool

    @property
    def degree(self) -> int:
        """Number of ranks a sequence is spread over."""
        return self.ulysses * self.ring

    @property
    def multiple(self) -> int:
        """A padded sequence length must be a multiple of this."""
        return self.degree * 2 if self.causal and self.ring > 1 else self.degree

    def padded(self, length: int) -> int:
        """The smallest legal length that holds `length` positions."""
        return -(-length // self.multiple) * self.multiple

    def positions(self, length: int, sp_index: int) -> NDArray[np.int64]:
        """Positions (ascending) of a sequence of padded `length` that one rank holds."""
        ring_index, ulysses_index = divmod(sp_index, self.ulysses)
        held = self._ring_positions(length, ring_index)
        share = len(held) // self.ulysses
        return held[ulysses_index * share : (ulysses_index + 1) * share]

    def _ring_positions(self, length: int, ring_index: int) -> NDArray[np.int64]:
        everything = np.arange(length, dtype=np.int64)
        if not (self.causal and self.ring > 1):
            share = length // self.ring
            return everything[ring_index * share : (ring_index + 1) * share]
        chunks = everything.reshape(2 * self.ring, -1)
        return np.concatenate([chunks[ring_index], chunks[2 * self.ring - 1 - ring_index]])


@dataclass(frozen=True)
class Layout:
    """The roles of all ranks for one configuration. `Layout.of` checks that they fit."""

    world_size: int
    split: SequenceSplit
    encoder_split: SequenceSplit
    accumulation: int
    encoder_micro_batch_scale: int

    @property
    def sp(self) -> int:
        """Ranks that share one sequence of the decoder or DiT."""
        return self.split.degree

    @property
    def dp(self) -> int:
        """Data-parallel groups of the decoder or DiT."""
        return self.world_size // self.sp

    @property
    def encoder_groups(self) -> int:
        """Data-parallel groups of the encoder."""
        return self.world_size // self.encoder_split.degree

    @staticmethod
    def of(config: Config, world_size: int) -> Layout:
        """The layout of `config` on `world_size` ranks. Raises ConfigError if it cannot be."""
        parallel, training = config.parallel, config.training
        _check_divides(parallel.sp_degree, world_size, "parallel.sp_degree", "the number of ranks")
        split = _decoder_split(config)
        _check_divides(
            split.ulysses,
            config.model.num_heads,
            "the Ulysses degree",
            "model.num_heads (Ulysses splits attention heads)",
        )
        _check_encoder(config, world_size)
        dp = world_size // parallel.sp_degree
        _check_divides(
            dp * training.micro_batch_size,
            training.global_batch_size,
            f"data-parallel degree {dp} times micro_batch_size {training.micro_batch_size}",
            "training.global_batch_size",
        )
        accumulation = training.global_batch_size // (dp * training.micro_batch_size)
        _check_divides(
            parallel.encoder_micro_batch_scale,
            accumulation,
            "parallel.encoder_micro_batch_scale",
            "the micro-batches of a global batch on a rank",
        )
        return Layout(
            world_size=world_size,
            split=split,
            encoder_split=SequenceSplit(parallel.encoder_sp_degree, 1, causal=False),
            accumulation=accumulation,
            encoder_micro_batch_scale=parallel.encoder_micro_batch_scale,
        )


def _decoder_split(config: Config) -> SequenceSplit:
    parallel = config.parallel
    ulysses = {
        None: 1,
        "ulysses": parallel.sp_degree,
        "ring": 1,
        "usp": parallel.ulysses_degree or 1,
    }[parallel.sp_algorithm]
    causal = isinstance(config.model, VlmConfig)
    return SequenceSplit(ulysses, parallel.sp_degree // ulysses, causal)


def _check_encoder(config: Config, world_size: int) -> None:
    degree = config.parallel.encoder_sp_degree
    _check_divides(degree, world_size, "parallel.encoder_sp_degree", "the number of ranks")
    if isinstance(config.model, VlmConfig):
        _check_divides(
            degree,
            config.model.encoder.num_heads,
            "parallel.encoder_sp_degree",
            "model.encoder.num_heads (the encoder's SP is Ulysses, which splits heads)",
        )


def _check_divides(divisor: int, number: int, what: str, of_what: str) -> None:
    if number % divisor != 0:
        raise ConfigError(f"{what} ({divisor}) must divide {of_what} ({number})")
