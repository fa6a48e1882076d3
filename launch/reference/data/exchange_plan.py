"""Where image features are made and where they are needed: pure, the same on every rank.

The images of one encoder round (all data-parallel ranks, one or several micro-batches)
are dealt over the encoder's groups by their number of patches. The decoder rank that
holds a patch's position in its shard of the sequence gets the patch's feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from launch.reference.data.catalog import Sample
from launch.reference.data.order import GlobalBatch
from launch.reference.layout import Layout, SequenceSplit

Index = NDArray[np.int64]


@dataclass(frozen=True)
class ExchangePlan:
    """One rank's part in an encoder round.

    images: sample numbers that this rank's encoder group encodes.
    image_length: padded patches of each.
    send_rows: rows of the rank's flattened (images, local patches) in sending order.
    send_counts, receive_counts: rows to and from every rank.
    feature_rows: for each micro-batch, its rows among the received ones.
    feature_places: their places in the flattened (batch, local positions).
    """

    images: tuple[int, ...]
    image_length: int
    send_rows: Index
    send_counts: tuple[int, ...]
    receive_counts: tuple[int, ...]
    feature_rows: tuple[Index, ...]
    feature_places: tuple[Index, ...]


def deal_images(patches: Sequence[int], groups: int) -> list[int]:
    """The encoder group of each image: heaviest first, to the group with least patches."""
    total = [0] * groups
    dealt = [0] * len(patches)
    for image in sorted(range(len(patches)), key=lambda index: (-patches[index], index)):
        group = min(range(groups), key=lambda index: (total[index], index))
        dealt[image] = group
        total[group] += patches[image]
    return dealt


def sequence_length(
    micro_batch: Sequence[int], samples: Sequence[Sample], split: SequenceSplit
) -> int:
    """Padded positions of a micro-batch's sequences."""
    return split.padded(max(samples[number].length for number in micro_batch))


@dataclass(frozen=True)
class _Routes:
    """A row for each patch of the round."""

    micro_batch: Index
    source_rank: Index
    source_row: Index
    target_rank: Index
    target_place: Index


def plan_exchange(
    encoder_round: GlobalBatch, samples: Sequence[Sample], layout: Layout, rank: int
) -> ExchangePlan:
    """The plan of one rank; `encoder_round` holds the micro-batches encoded at once."""
    numbers = [number for side in encoder_round for batch in side for number in batch]
    dealt = deal_images([samples[number].patches for number in numbers], layout.encoder_groups)
    members = [
        [number for number, group in zip(numbers, dealt, strict=True) if group == index]
        for index in range(layout.encoder_groups)
    ]
    lengths = [_image_length(images, samples, layout.encoder_split) for images in members]
    routes = _routes(encoder_round, samples, layout, members, lengths)
    own_group = rank // layout.encoder_split.degree
    sent = np.flatnonzero(routes.source_rank == rank)
    sent = sent[np.argsort(routes.target_rank[sent], kind="stable")]
    received = np.flatnonzero(routes.target_rank == rank)
    received = received[np.argsort(routes.source_rank[received], kind="stable")]
    by_micro_batch = [
        np.flatnonzero(routes.micro_batch[received] == index) for index in range(len(encoder_round))
    ]
    return ExchangePlan(
        images=tuple(members[own_group]),
        image_length=lengths[own_group],
        send_rows=routes.source_row[sent],
        send_counts=_counts(routes.target_rank[sent], layout.world_size),
        receive_counts=_counts(routes.source_rank[received], layout.world_size),
        feature_rows=tuple(by_micro_batch),
        feature_places=tuple(routes.target_place[received][rows] for rows in by_micro_batch),
    )


def _image_length(images: Sequence[int], samples: Sequence[Sample], split: SequenceSplit) -> int:
    return split.padded(max((samples[number].patches for number in images), default=0))


def _counts(ranks: Index, world_size: int) -> tuple[int, ...]:
    return tuple(int(count) for count in np.bincount(ranks, minlength=world_size))


def _routes(
    encoder_round: GlobalBatch,
    samples: Sequence[Sample],
    layout: Layout,
    members: Sequence[Sequence[int]],
    lengths: Sequence[int],
) -> _Routes:
    home = {
        number: (group, slot)
        for group, images in enumerate(members)
        for slot, number in enumerate(images)
    }
    columns: list[tuple[Index, ...]] = []
    for index, side_by_side in enumerate(encoder_round):
        for dp_index, batch in enumerate(side_by_side):
            length = sequence_length(batch, samples, layout.split)
            owner, place = _owners(layout.split, length)
            share = length // layout.sp
            for row, number in enumerate(batch):
                patches = np.arange(samples[number].patches)
                group, slot = home[number]
                local = lengths[group] // layout.encoder_split.degree
                columns.append(
                    (
                        np.full(len(patches), index),
                        group * layout.encoder_split.degree + patches // local,
                        slot * local + patches % local,
                        dp_index * layout.sp + owner[patches],
                        row * share + place[patches],
                    )
                )
    return _Routes(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _owners(split: SequenceSplit, length: int) -> tuple[Index, Index]:
    """For each position of a sequence: the SP index that holds it, and where."""
    owner = np.empty(length, np.int64)
    place = np.empty(length, np.int64)
    for sp_index in range(split.degree):
        positions = split.positions(length, sp_index)
        owner[positions] = sp_index
        place[positions] = np.arange(len(positions))
    return owner, place
