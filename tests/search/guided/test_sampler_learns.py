"""What the guided sampler learns from runs that came to nothing, and from others' studies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.storage import OptunaStore
from tests.search.guided.planted import (
    LAYOUTS,
    LAYOUTS_LIMIT,
    Measure,
    Sweep,
    failed,
    guided,
    layout,
    layout_peak,
    layout_seconds,
    ok,
    oom,
    over_limit,
)


def share_unusable(measure: Measure, limit: int | None) -> float:
    """Of the proposals of two runs, the first ten of each left out."""
    usable = []
    for seed in range(2):
        sweep = Sweep(LAYOUTS, measure, limit)
        sweep.run(guided(LAYOUTS, seed, limit), 35)
        usable += [r.status in (Status.OK, Status.STOPPED) for r in sweep.records[10:]]
    return 1 - float(np.mean(usable))


def as_peaks(point: Point) -> Outcome:
    seconds, peak = layout_seconds(point), layout_peak(point)
    return ok(seconds, peak) if peak <= LAYOUTS_LIMIT else over_limit(seconds, peak)


def as_oom(point: Point) -> Outcome:
    is_too_much = layout_peak(point) > LAYOUTS_LIMIT
    return oom() if is_too_much else ok(layout_seconds(point), layout_peak(point))


def as_oom_without_peaks(point: Point) -> Outcome:
    return oom() if layout_peak(point) > LAYOUTS_LIMIT else ok(layout_seconds(point))


def as_failed(point: Point) -> Outcome:
    """Where nobody sees that it was memory."""
    return failed() if layout_peak(point) > LAYOUTS_LIMIT else ok(layout_seconds(point))


@pytest.mark.parametrize(
    ("measure", "limit"),
    [
        (as_peaks, LAYOUTS_LIMIT),
        (as_oom, LAYOUTS_LIMIT),
        (as_oom_without_peaks, None),
        (as_failed, None),
        (layout, LAYOUTS_LIMIT),
    ],
    ids=["over the limit", "oom", "oom without peaks", "failed", "everything"],
)
def test_points_that_do_not_run_are_avoided(measure: Measure, limit: int | None) -> None:
    """Although the fastest points are among them."""
    statuses = [measure(point).status for point in LAYOUTS.points]
    in_space = [status not in (Status.OK, Status.STOPPED) for status in statuses]
    assert share_unusable(measure, limit) < 0.6 * np.mean(in_space)


def test_the_best_point_is_found_among_stopped_failed_and_oom_runs() -> None:
    fine = [point for point in LAYOUTS.points if layout(point).status is Status.OK]
    optimum = min(layout_seconds(point) for point in fine)
    for seed in range(3):
        sweep = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT)
        sweep.run(guided(LAYOUTS, seed, LAYOUTS_LIMIT), 40)
        found = [r.outcome.batch_time_s or np.inf for r in sweep.records if r.status is Status.OK]
        assert min(found) < 1.03 * optimum


def plain_study(space: LegalSpace, measure: Callable[[Point], dict[str, Any]]) -> optuna.Study:
    """40 random trials as a program of another's keeps them."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    encoding, study = Encoding(space), optuna.create_study()
    for row in np.random.default_rng(0).permutation(len(space.codes))[:40]:
        point = space.points[int(row)]
        params = encoding.encode(point)
        distributions = {name: encoding.distributions[name] for name in params}
        trial = create_trial(params=params, distributions=distributions, **measure(point))
        study.add_trial(trial)
    return study


def as_constraint(point: Point) -> dict[str, Any]:
    over = layout_peak(point) / LAYOUTS_LIMIT - 1
    return {"value": 9.9 if over > 0 else layout_seconds(point), "constraints": {"memory": over}}


def as_failure(point: Point) -> dict[str, Any]:
    if layout_peak(point) > LAYOUTS_LIMIT:
        return {"state": TrialState.FAIL}
    return {"value": layout_seconds(point)}


def with_pruned(point: Point) -> dict[str, Any]:
    if point["chunk"] == 1:
        return {"state": TrialState.PRUNED}
    return as_constraint(point)


@pytest.mark.parametrize("measure", [as_constraint, as_failure, with_pruned])
def test_a_study_of_another_program_is_learned_from(
    measure: Callable[[Point], dict[str, Any]],
) -> None:
    """What is proposed next runs, and some of it is faster than most of what does."""
    study, encoding = plain_study(LAYOUTS, measure), Encoding(LAYOUTS)
    known = {encoding.decode(trial.params) for trial in study.get_trials()}
    store, sampler = OptunaStore(study, encoding, LAYOUTS_LIMIT), guided(LAYOUTS)
    proposed = [store.ask(sampler)[1] for _ in range(6)]
    assert len({*known, *proposed}) == len(known) + 6
    fit = [point for point in LAYOUTS.points if layout_peak(point) <= LAYOUTS_LIMIT]
    fast = np.quantile([layout_seconds(point) for point in fit], 0.1)
    assert sum(point in fit for point in proposed) >= 5
    assert sum(layout_seconds(point) <= fast for point in proposed if point in fit) >= 2
