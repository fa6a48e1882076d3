"""Samplers in Optuna studies of the user's own: several, in threads, of the wrong kind."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable

import optuna
import pytest

from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.guided.belief import Knowledge
from autotune.search.point_sampler import PointSampler, SpaceUsedUpError
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

SAMPLERS = ["guided", "tpe", "random"]


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def slow(point: Point) -> float:
    return 1.0 / point["micro_batch_size"] + 0.1 * point["sp_degree"]


def inverted(point: Point) -> float:
    """What is fast by `slow` is slow by this one."""
    return 3.0 - slow(point)


class Objective:
    """Asks for one parameter after the other, as objectives do, and takes its time over it."""

    def __init__(self, encoding: Encoding, wait_s: float = 0.0) -> None:
        self.encoding, self.wait_s = encoding, wait_s

    def __call__(self, trial: optuna.Trial) -> float:
        for name, distribution in self.encoding.distributions.items():
            if name in trial.relative_params:
                time.sleep(self.wait_s)
                trial._suggest(name, distribution)
        return slow(self.encoding.decode(trial.params))


def points_of(study: optuna.Study, encoding: Encoding) -> list[Point]:
    return [encoding.decode(trial.params) for trial in study.trials]


def run(sampler: PointSampler, measure, trials: int = 15) -> list[Point]:
    study = optuna.create_study(sampler=sampler)
    encoding = sampler.encoding
    for _ in range(trials):
        trial = study.ask()
        for name in trial.relative_params:
            trial._suggest(name, encoding.distributions[name])
        study.tell(trial, measure(encoding.decode(trial.params)))
    return points_of(study, encoding)


@pytest.mark.parametrize("setting", SAMPLERS)
def test_a_second_study_is_searched_by_its_own_results(space: LegalSpace, setting: str) -> None:
    expected = run(make_sampler(setting, Encoding(space), 0), inverted)
    sampler = make_sampler(setting, Encoding(space), 0)
    run(sampler, slow)
    again = run(sampler, inverted)
    assert again == expected
    assert len(set(again)) == len(again)


@pytest.mark.parametrize("setting", SAMPLERS)
def test_threads_never_measure_a_point_twice(space: LegalSpace, setting: str) -> None:
    encoding = Encoding(space)
    study = optuna.create_study(sampler=make_sampler(setting, encoding, 0))
    study.optimize(Objective(encoding, 0.001), n_trials=32, n_jobs=4)
    points = points_of(study, encoding)
    assert len(points) == len(set(points)) == 32


def test_what_other_threads_were_given_counts_as_running(space: LegalSpace) -> None:
    """Though their trials show no parameter yet: else they would be given the likes of it."""
    encoding = Encoding(space)
    shown, hidden = (optuna.create_study() for _ in range(2))
    proposals = []
    for study in (shown, hidden):
        study.sampler = make_sampler("guided", encoding, 0)
        study.optimize(Objective(encoding), n_trials=8)
        open_trials = [study.ask() for _ in range(3)]
        for trial in open_trials:
            trial.relative_params  # noqa: B018 (asking is what draws the point)
            if study is shown:
                Objective(encoding)(trial)
        proposals.append(study.ask().relative_params)
    assert proposals[0] == proposals[1]


def test_a_study_that_is_gone_is_not_kept(space: LegalSpace) -> None:
    sampler = make_sampler("guided", Encoding(space), 0)
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    assert trial.relative_params
    assert len(sampler.taken(study)) == 1
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert sampler.taken(study) == set()  # it never had a point


def test_a_sampler_can_be_kept_in_a_file(make_space: Callable[..., LegalSpace]) -> None:
    """As Optuna's documentation has it for its own; with rules a space cannot be."""
    sizes = {name: {"choices": [1, 2, 4]} for name in ("sp_degree", "micro_batch_size")}
    sampler = make_sampler("guided", Encoding(make_space(sizes)), 0)
    expected = run(sampler, slow, 5)
    assert run(pickle.loads(pickle.dumps(sampler)), slow, 5) == expected


def test_a_limit_of_any_size_can_be_held_against(space: LegalSpace) -> None:
    """Such as what a table's largest peak is: NumPy has no logarithm of integers beyond 64 bits."""
    encoding = Encoding(space)
    samplers = [make_sampler("guided", encoding, 0, Knowledge(n)) for n in (2.0**80, 2**80)]
    assert run(samplers[0], slow) == run(samplers[1], slow)


@pytest.mark.parametrize("setting", SAMPLERS)
@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "minimize"]])
def test_only_the_least_of_one_value_is_looked_for(
    space: LegalSpace, setting: str, directions: list[str]
) -> None:
    study = optuna.create_study(
        directions=directions, sampler=make_sampler(setting, Encoding(space), 0)
    )
    with pytest.raises(ValueError, match=r"direction is m.*create_study.direction='minimize'"):
        study.ask()


def test_the_end_of_the_space_has_words(space: LegalSpace) -> None:
    encoding = Encoding(space)
    study = optuna.create_study(sampler=make_sampler("guided", encoding, 0))
    with pytest.raises(SpaceUsedUpError, match=f"all {len(space.codes)} legal points"):
        study.optimize(Objective(encoding), n_trials=len(space.codes) + 1)


def test_a_value_that_the_space_does_not_have_is_named(space: LegalSpace) -> None:
    study = optuna.create_study(sampler=make_sampler("guided", Encoding(space), 0))
    wide = optuna.distributions.IntDistribution(0, 20)
    study.add_trial(
        optuna.create_trial(params={"sp_degree": 9}, distributions={"sp_degree": wide}, value=1.0)
    )
    with pytest.raises(ValueError, match="sp_degree=9 is not in this space, which has 0, 1, 2"):
        study.ask().relative_params  # noqa: B018 (asking is what draws the point)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match=f"limit_bytes={limit} must be a finite number above 0"):
        Knowledge(limit)


def test_no_thread_waits_for_ever(space: LegalSpace) -> None:
    """A proposal that fails gives the lock back."""
    encoding = Encoding(space)
    sampler = make_sampler("random", encoding, 0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(Objective(encoding), n_trials=len(space.codes))
    for _ in range(2):
        failed = threading.Thread(target=_swallow, args=(study,), daemon=True)
        failed.start()
        failed.join(10)
        assert not failed.is_alive()


def _swallow(study: optuna.Study) -> None:
    with pytest.raises(SpaceUsedUpError):
        study.ask().relative_params  # noqa: B018 (asking is what draws the point)
