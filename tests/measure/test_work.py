"""The same work, by what is counted and by what is learned."""

from __future__ import annotations

import math

import pytest

from autotune.measure.outcome import Work
from autotune.measure.records import StepRecord
from autotune.measure.work import other_losses, other_work, work_of

LOSSES = (8.0, 6.0, 4.0)


def rows(losses: list[float | None], samples: int = 16) -> list[tuple[StepRecord, ...]]:
    return [
        (StepRecord(n, 1.0, samples, 100 + n % 2, loss=loss), StepRecord(n, 1.0))
        for n, loss in enumerate(losses)
    ]


def test_the_window_is_counted_once_however_often_it_ran() -> None:
    steps = rows([1.0] * 7)
    assert work_of(steps, steps, 2) == Work(32, 201, (1.0,))


def test_losses_are_means_over_whole_passes_of_at_least_four_steps() -> None:
    steps = rows([float(n) for n in range(13)])
    assert work_of(steps, steps, 3).losses == (2.5, 8.5)
    assert work_of(steps, steps, 1).losses == (1.5, 5.5, 9.5)


@pytest.mark.parametrize("broken", [None, math.nan])
def test_a_stretch_without_a_loss_leaves_the_others(broken: float | None) -> None:
    steps = rows([1.0] * 5 + [broken] + [1.0] * 6)
    assert work_of(steps, steps, 1).losses == (1.0, None, 1.0)


def test_the_loss_may_come_from_any_rank() -> None:
    steps = [(StepRecord(n, 1.0), StepRecord(n, 1.0, loss=2.0)) for n in range(4)]
    assert work_of(steps, steps, 1).losses == (2.0,)


def test_fewer_samples_are_other_work() -> None:
    reason = other_work(Work(42, None), Work(64, None), 4)
    assert reason == "did other work: 42 samples in the data window, the baseline 64"


def test_what_the_baseline_did_not_count_is_not_compared() -> None:
    assert other_work(Work(64, 10), Work(64, None), 4) is None


def test_what_the_baseline_counted_must_be_counted() -> None:
    reason = other_work(Work(None, 10), Work(64, None), 4)
    assert reason is not None
    assert "recorded no samples" in reason
    for losses in ((), (None, None)):
        reason = other_losses(Work(1, 1, losses), Work(1, 1, LOSSES), 0.01)
        assert reason is not None
        assert "recorded no losses" in reason


def test_the_same_losses_are_the_same_work() -> None:
    assert other_losses(Work(1, 1, LOSSES[:2]), Work(1, 1, LOSSES), 0.01) is None


def test_another_order_of_the_samples_is_the_same_work() -> None:
    """Real losses of tiny_vlm: the baseline, and with the order that is farthest from it."""
    baseline = Work(1, 1, (7.52892, 5.57206, 3.87981))
    reordered = Work(1, 1, (7.55878, 5.67724, 4.01086))
    assert other_losses(reordered, baseline, 0.01) is None


@pytest.mark.parametrize("losses", [(8.2, 6.0, 4.0), (8.0, 6.4, 4.0), (8.0, 6.0, 4.5)])
def test_other_losses_are_other_work(losses: tuple[float, ...]) -> None:
    reason = other_losses(Work(1, 1, losses), Work(1, 1, LOSSES), 0.01)
    assert reason is not None
    assert reason.startswith("learns otherwise: mean loss")
