"""Bucket orders: the same samples in every order, less padding, equal work."""

from __future__ import annotations

import numpy as np
import pytest

from launch.reference.data.order import plan_window

LENGTHS = [int(length) for length in np.random.default_rng(5).integers(10, 500, 64)]
ORDERS = ("none", "bucketing", "reordering")


def window(order, *, micro_batch_size=2, dp=4, seed=1):
    return plan_window(
        LENGTHS,
        order,
        global_batch_size=16,
        micro_batch_size=micro_batch_size,
        dp=dp,
        seed=seed,
        work_of=lambda count, longest: count * longest,
    )


def padding(batches):
    """Positions that hold nothing, over the whole window."""
    return sum(
        max(LENGTHS[n] for n in micro) * len(micro) - sum(LENGTHS[n] for n in micro)
        for batch in batches
        for side in batch
        for micro in side
    )


def imbalance(batches):
    """Largest difference between ranks' padded positions in a step, summed over steps."""
    total = 0
    for batch in batches:
        works = [
            sum(max(LENGTHS[n] for n in micro) * len(micro) for micro in rank)
            for rank in zip(*batch, strict=True)
        ]
        total += max(works) - min(works)
    return total


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("micro_batch_size", "dp"), [(1, 1), (1, 4), (2, 4), (4, 2), (16, 1)])
def test_a_pass_visits_every_sample_once(order, micro_batch_size, dp):
    batches = window(order, micro_batch_size=micro_batch_size, dp=dp)
    assert len(batches) == 4
    for batch in batches:
        assert len(batch) == 16 // (dp * micro_batch_size)
        assert {len(side) for side in batch} == {dp}
        assert {len(micro) for side in batch for micro in side} == {micro_batch_size}
    visited = [n for batch in batches for side in batch for micro in side for n in micro]
    assert sorted(visited) == list(range(64))


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_depends_on_the_seed_alone(order):
    assert window(order) == window(order)
    assert window(order) != window(order, seed=2)


def test_none_does_not_depend_on_the_layout():
    one = window("none", micro_batch_size=1, dp=1)
    four = window("none", micro_batch_size=2, dp=4)
    for left, right in zip(one, four, strict=True):
        assert {n for side in left for m in side for n in m} == {
            n for side in right for m in side for n in m
        }


@pytest.mark.parametrize("order", ["bucketing", "reordering"])
def test_buckets_have_the_least_padding_there_is(order):
    # Neighbours in sorted order: no other grouping into pairs pads less.
    ordered = sorted(LENGTHS)
    least = sum(b - a for a, b in zip(ordered[::2], ordered[1::2], strict=True))
    assert padding(window(order)) == least < padding(window("none")) / 10


def test_reordering_gives_ranks_like_work():
    assert imbalance(window("reordering")) < imbalance(window("bucketing")) / 5
