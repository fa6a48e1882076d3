"""The order in which samples of the data window are visited, for all bucket orders.

Every order visits every sample once in a pass over the window, in global batches of the
same size; they differ in which samples meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from launch.reference.config import BucketOrder

# The samples of one micro-batch of one data-parallel rank.
MicroBatch = tuple[int, ...]
# By accumulation step, then by data-parallel rank.
GlobalBatch = tuple[tuple[MicroBatch, ...], ...]
# Work of a micro-batch from its number of sequences and its longest one.
WorkOf = Callable[[int, int], float]


def plan_window(
    lengths: Sequence[int],
    order: BucketOrder,
    *,
    global_batch_size: int,
    micro_batch_size: int,
    dp: int,
    seed: int,
    work_of: WorkOf,
) -> tuple[GlobalBatch, ...]:
    """The global batches of one pass over the window.

    lengths: positions of each sample's sequence; their number must be a multiple of
    global_batch_size, and that of dp * micro_batch_size.
    none: shuffled. bucketing: samples of like length share a micro-batch, micro-batches
    shuffled. reordering: bucketed, and ranks get like work in every step.
    """
    generator = np.random.default_rng([seed, 4])
    accumulation = global_batch_size // (dp * micro_batch_size)
    if order == "none":
        shuffled = generator.permutation(len(lengths)).reshape(-1, micro_batch_size)
        return _deal_in_order(_as_micro_batches(shuffled), accumulation, dp)
    by_length = np.array(sorted(range(len(lengths)), key=lambda number: (lengths[number], number)))
    buckets = _as_micro_batches(by_length.reshape(-1, micro_batch_size))
    if order == "bucketing":
        shuffled_buckets = [buckets[index] for index in generator.permutation(len(buckets))]
        return _deal_in_order(shuffled_buckets, accumulation, dp)
    works = [work_of(len(bucket), max(lengths[number] for number in bucket)) for bucket in buckets]
    return _deal_equal_work(buckets, works, accumulation, dp, generator)


def _as_micro_batches(rows: np.ndarray) -> list[MicroBatch]:
    return [tuple(int(number) for number in row) for row in rows]


def _deal_in_order(
    micro_batches: Sequence[MicroBatch], accumulation: int, dp: int
) -> tuple[GlobalBatch, ...]:
    rounds = [tuple(micro_batches[at : at + dp]) for at in range(0, len(micro_batches), dp)]
    return tuple(
        tuple(rounds[at : at + accumulation]) for at in range(0, len(rounds), accumulation)
    )


def _deal_equal_work(
    micro_batches: Sequence[MicroBatch],
    works: Sequence[float],
    accumulation: int,
    dp: int,
    generator: np.random.Generator,
) -> tuple[GlobalBatch, ...]:
    """Ranks run micro-batches of like work side by side, and like sums in a step."""
    heaviest_first = sorted(range(len(works)), key=lambda index: -works[index])
    rounds = [heaviest_first[at : at + dp] for at in range(0, len(works), dp)]
    shuffled = [rounds[index] for index in generator.permutation(len(rounds))]
    batches = []
    for at in range(0, len(shuffled), accumulation):
        total = [0.0] * dp
        batch = []
        for side_by_side in shuffled[at : at + accumulation]:
            # The heaviest goes to the rank that has had least so far.
            ranks = sorted(range(dp), key=lambda rank: (total[rank], rank))
            dealt: list[MicroBatch] = [()] * dp
            for rank, index in zip(ranks, side_by_side, strict=True):
                dealt[rank] = micro_batches[index]
                total[rank] += works[index]
            batch.append(tuple(dealt))
        batches.append(tuple(batch))
    return tuple(batches)
