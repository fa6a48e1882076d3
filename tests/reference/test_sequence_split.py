"""How sequences are spread over ranks, and how features find their positions."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import CASES, content

from launch.reference.config import parse_config
from launch.reference.data.catalog import catalog
from launch.reference.data.exchange_plan import deal_images, plan_exchange
from launch.reference.layout import Layout, SequenceSplit


def test_zigzag_gives_each_ring_rank_an_early_and_a_late_chunk():
    split = SequenceSplit(ulysses=1, ring=2, causal=True)
    assert split.positions(8, 0).tolist() == [0, 1, 6, 7]
    assert split.positions(8, 1).tolist() == [2, 3, 4, 5]


def test_zigzag_balances_causal_work():
    split = SequenceSplit(ulysses=1, ring=4, causal=True)
    # A position attends to itself and all before it.
    works = [int((split.positions(64, rank) + 1).sum()) for rank in range(4)]
    assert len(set(works)) == 1


def test_usp_splits_a_ring_rank_s_positions_among_its_ulysses_ranks():
    split = SequenceSplit(ulysses=2, ring=2, causal=True)
    held = [split.positions(8, rank).tolist() for rank in range(4)]
    assert held == [[0, 1], [6, 7], [2, 3], [4, 5]]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("ulysses", "ring"), [(1, 1), (4, 1), (1, 4), (2, 2), (2, 3)])
def test_every_position_is_held_once(ulysses, ring, causal):
    split = SequenceSplit(ulysses, ring, causal)
    length = split.padded(37)
    assert length >= 37
    held = [split.positions(length, rank) for rank in range(split.degree)]
    assert len({len(positions) for positions in held}) == 1
    assert sorted(np.concatenate(held).tolist()) == list(range(length))


def test_images_are_dealt_by_their_patches():
    # Heaviest first to the lightest group: 9 | 5, 4 and the 1 goes to either side.
    groups = deal_images([1, 9, 4, 5], 2)
    assert groups[1] != groups[3] == groups[2]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("vlm")])
def test_every_rank_sends_what_the_others_expect(name):
    config = parse_config(content(*CASES[name]))
    layout = Layout.of(config, 4)
    samples = catalog(config)
    share = config.training.micro_batch_size
    numbers = iter(range(len(samples)))
    encoder_round = tuple(
        tuple(tuple(next(numbers) for _ in range(share)) for _ in range(layout.dp))
        for _ in range(layout.encoder_micro_batch_scale)
        if layout.dp * share * layout.encoder_micro_batch_scale <= len(samples)
    )
    plans = [plan_exchange(encoder_round, samples, layout, rank) for rank in range(4)]
    for source in range(4):
        for target in range(4):
            sent = plans[source].send_counts[target]
            assert sent == plans[target].receive_counts[source]
    patches = sum(samples[n].patches for side in encoder_round for m in side for n in m)
    assert sum(len(plan.send_rows) for plan in plans) == patches
    # Every image is encoded by one group alone.
    groups = {plan.images for plan in plans}
    assert sum(len(images) for images in groups) == len({n for g in groups for n in g})
