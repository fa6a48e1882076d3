"""What the guided sampler proposes, and that nothing it is told stops it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from autotune.measure.outcome import Outcome, Status
from autotune.search.guided.sampler import epoch_start
from autotune.search.point_sampler import SpaceUsedUpError
from tests.search.guided.planted import (
    LAYOUTS,
    LAYOUTS_LIMIT,
    Sweep,
    failed,
    guided,
    kinds,
    ladder,
    layout,
    layout_peak,
    ok,
    oom,
    over_limit,
    space_of,
)


def test_the_planted_space_has_every_ending() -> None:
    endings = Counter(layout(point).status for point in LAYOUTS.points)
    assert set(endings) == {
        Status.OK,
        Status.STOPPED,
        Status.OVER_LIMIT,
        Status.OOM,
        Status.FAILED,
    }
    usable = endings[Status.OK] + endings[Status.STOPPED]
    assert 0.4 < usable / len(LAYOUTS.codes) < 0.7


def test_no_point_is_proposed_twice_whatever_it_came_to() -> None:
    space = space_of(
        {
            "micro_batch_size": ladder(4),
            "tp": ladder(3),
            "kind": kinds(3),
            "depth": ladder(3, when="kind == 'kind1'"),
            "chunk": {"choices": [4]},
        }
    )
    sweep = Sweep(space, layout, LAYOUTS_LIMIT)
    points = sweep.run(guided(space, limit_bytes=LAYOUTS_LIMIT), 60)
    assert Counter(points) == Counter(space.points)
    assert len({record.status for record in sweep.records}) == 5


@pytest.mark.parametrize("limit", [None, LAYOUTS_LIMIT])
@pytest.mark.parametrize(
    "outcome",
    [oom(), failed(), over_limit(None, 200), over_limit(2.0, 200), ok(2.0), ok(2.0, 50)],
    ids=["oom", "failed", "over at once", "over", "equal", "equal with peaks"],
)
def test_when_all_runs_end_alike_the_whole_space_is_tried(
    outcome: Outcome, limit: int | None
) -> None:
    space = space_of({"micro_batch_size": ladder(3), "tp": ladder(3), "kind": kinds(2)})
    points = Sweep(space, lambda _: outcome, limit).run(guided(space, limit_bytes=limit), 18)
    assert Counter(points) == Counter(space.points)


def test_after_out_of_memory_less_memory_is_tried() -> None:
    """Names tell which way that is."""
    needs = []
    for seed in range(4):
        sweep = Sweep(LAYOUTS, lambda _: oom(), LAYOUTS_LIMIT)
        points = sweep.run(guided(LAYOUTS, seed, LAYOUTS_LIMIT), 9)
        needs += [layout_peak(point) for point in points[3:]]
    assert np.median(needs) < 0.7 * np.median([layout_peak(point) for point in LAYOUTS.points])


@pytest.mark.parametrize(
    "parameters",
    [
        {"only": {"choices": [3]}},
        {"only": {"choices": [3], "ordered": True}, "other": {"choices": ["a"]}},
    ],
)
def test_a_space_of_one_point(parameters: dict[str, dict[str, object]]) -> None:
    space = space_of(parameters)
    sweep, sampler = Sweep(space, lambda _: ok(1.0)), guided(space)
    assert sweep.run(sampler, 1) == [space.points[0]]
    with pytest.raises(SpaceUsedUpError):
        sweep.step(sampler)


def test_parameters_with_one_choice_are_carried_along() -> None:
    space = space_of(
        {
            "fixed": {"choices": [7]},
            "kind": kinds(3),
            "extra": {"choices": ["on"], "ordered": True, "when": "kind == 'kind1'"},
            "size": ladder(4),
        }
    )
    points = Sweep(space, lambda point: ok(float(point["size"]))).run(guided(space), 12)
    assert Counter(points) == Counter(space.points)


def test_points_asked_for_at_the_same_time_differ() -> None:
    sweep, sampler = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT), guided(LAYOUTS)
    started = [sweep.ask(sampler)[1] for _ in range(5)]
    assert len(set(started)) == 5
    sweep, sampler = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT), guided(LAYOUTS)
    before = sweep.run(sampler, 15)
    started = [sweep.ask(sampler)[1] for _ in range(8)]
    assert len({*before, *started}) == 23


def test_epochs_begin_often_and_never_later_than_now() -> None:
    starts = [epoch_start(runs) for runs in range(2000)]
    assert starts == sorted(starts)
    for runs, start in enumerate(starts):
        assert start <= runs
        assert runs - start <= runs / 10
        assert starts[start] == start
