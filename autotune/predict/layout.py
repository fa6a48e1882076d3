"""A point as the cost model sees it: who works on what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.predict.lengths import BucketOrder
from autotune.predict.workload import Workload


@dataclass(frozen=True)
class Layout:
    """How a global batch is spread over ranks and time.

    ulysses, ring: their product is the SP degree; ulysses is the inner group (USP, arXiv
    2405.07719). data_parallel: groups that work on samples of their own. accumulation:
    micro-batches of such a group in a global batch. shards: ranks that share parameters and
    optimizer states (ZeRO-3, FSDP). offloaded_layers, layers: of this rank's pipeline stage.
    loss_chunk: positions whose logits exist at once, 0 for all. encoder_scale: micro-batches
    whose images the encoder takes at once.
    """

    world_size: int
    ulysses: int
    ring: int
    tensor_parallel: int
    pipeline_parallel: int
    shards: int
    data_parallel: int
    micro_batch_size: int
    accumulation: int
    bucket_order: BucketOrder
    layers: float
    offloaded_layers: float
    recompute: bool
    loss_chunk: int
    encoder_sp: int
    encoder_scale: int

    @property
    def sp(self) -> int:
        """Ranks that share one sequence."""
        return self.ulysses * self.ring

    @property
    def encoder_rounds(self) -> float:
        """Passes of the encoder in a global batch."""
        return max(self.accumulation / self.encoder_scale, 1.0)

    @property
    def encoder_images(self) -> float:
        """Images of a round that one encoder group takes, on average."""
        samples = self.micro_batch_size * self.encoder_scale * self.data_parallel
        return samples * self.encoder_sp / self.world_size

    @classmethod
    def of(cls, settings: Mapping[str, Any], workload: Workload, world_size: int) -> Layout:
        """The layout of settings (see `settings`); what is absent is 1, none or off.

        Degrees that do not divide are rounded, for the rules of a space decide what is legal.
        """
        ulysses, ring = _sequence_parallel(settings)
        tensor = int(settings.get("tensor_parallel", 1))
        pipeline = int(settings.get("pipeline_parallel", 1))
        micro_batch = int(settings.get("micro_batch_size", 1))
        data_parallel = max(world_size // (ulysses * ring * tensor * pipeline), 1)
        layers = workload.decoder.num_layers / pipeline
        return cls(
            world_size=world_size,
            ulysses=ulysses,
            ring=ring,
            tensor_parallel=tensor,
            pipeline_parallel=pipeline,
            shards=min(int(settings.get("shards", 1)), max(world_size // (tensor * pipeline), 1)),
            data_parallel=data_parallel,
            micro_batch_size=micro_batch,
            accumulation=math.ceil(workload.global_batch_size / (data_parallel * micro_batch)),
            bucket_order=settings.get("bucket_order", "none"),
            layers=layers,
            offloaded_layers=min(float(settings.get("offload_blocks", 0)), layers),
            recompute=bool(settings.get("recompute", False)),
            loss_chunk=_loss_chunk(settings, micro_batch),
            encoder_sp=int(settings.get("encoder_sp_degree", 1)),
            encoder_scale=int(settings.get("encoder_micro_batch_scale", 1)),
        )


def _loss_chunk(settings: Mapping[str, Any], micro_batch_size: int) -> int:
    """Positions of a sequence whose logits exist at once.

    MindSpeed-MM's dynamic chunks share a total among the sequences of a micro-batch, rounded down
    to a power of two (fsdp/loss/loss_func.py).
    """
    mode = settings.get("loss_chunks", "static")
    if mode == "dynamic":
        share = max(int(settings.get("loss_total_chunk_size", 0)) // micro_batch_size, 1)
        return 1 << (share.bit_length() - 1)
    return 0 if mode == "none" else int(settings.get("loss_chunk_size", 0))


def _sequence_parallel(settings: Mapping[str, Any]) -> tuple[int, int]:
    """The Ulysses and the ring degree."""
    ulysses, ring = settings.get("ulysses_degree"), settings.get("ring_degree")
    degree = settings.get("sp_degree")
    if degree is None:  # a trainer that takes both degrees and multiplies them
        return ulysses or 1, ring or 1
    algorithm = settings.get("sp_algorithm", "ulysses")
    if degree == 1 or algorithm == "ulysses":
        return degree, 1
    if algorithm == "ring":
        return 1, degree
    inner = ulysses or max(degree // (ring or 2), 1)
    return inner, max(degree // inner, 1)
