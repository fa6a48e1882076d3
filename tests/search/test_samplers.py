"""Every sampler proposes legal points, each once, and the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest

from autotune.errors import UserError
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.point_sampler import INTERRUPTED_ATTRIBUTE, SpaceUsedUpError
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

SAMPLERS = [
    "guided",
    "tpe",
    "random",
    "exhaustive",
    {"_target_": "optuna.samplers.NSGAIISampler"},
    {"_target_": "optuna.samplers.TPESampler", "n_startup_trials": 3},
]


def time_of(point: Point) -> float:
    return (
        1.0 / point["micro_batch_size"]
        + 0.1 * point["sp_degree"]
        + 0.001 * point["loss_chunk_size"]
    )


def ask(study: optuna.Study, encoding: Encoding, setting: object, seed: int = 0) -> optuna.Trial:
    study.sampler = make_sampler(setting, encoding, seed)
    trial = study.ask()
    for name, distribution in encoding.distributions.items():
        if name in trial.relative_params:
            trial._suggest(name, distribution)
    return trial


def run(space: LegalSpace, setting: object, trials: int, seed: int = 0) -> list[Point]:
    encoding, study = Encoding(space), optuna.create_study()
    points = []
    for _ in range(trials):
        trial = ask(study, encoding, setting, seed)
        point = encoding.decode(trial.params)
        trial.set_constraint("memory", point["micro_batch_size"] - 2)
        study.tell(trial, time_of(point))
        points.append(point)
    return points


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("setting", SAMPLERS, ids=str)
def test_the_whole_space_without_a_repeat(space: LegalSpace, setting: object) -> None:
    points = run(space, setting, len(space.points))
    assert sorted(point.key for point in points) == sorted(point.key for point in space.points)


@pytest.mark.parametrize("setting", SAMPLERS, ids=str)
def test_a_used_up_space_is_told(space: LegalSpace, setting: object) -> None:
    encoding, study = Encoding(space), optuna.create_study()
    for point in space.points:
        params = encoding.encode(point)
        distributions = {name: encoding.distributions[name] for name in params}
        study.add_trial(
            optuna.create_trial(
                params=params, distributions=distributions, value=1.0, constraints={"memory": 0.0}
            )
        )
    with pytest.raises(SpaceUsedUpError):
        ask(study, encoding, setting)


@pytest.mark.parametrize("setting", ["guided", "tpe", "random"])
def test_same_seed_same_proposals(space: LegalSpace, setting: str) -> None:
    assert run(space, setting, 15) == run(space, setting, 15)
    assert run(space, setting, 15) != run(space, setting, 15, seed=1)


@pytest.mark.parametrize("setting", ["guided", "tpe", "random", "exhaustive"])
def test_an_interrupted_trial_changes_nothing(space: LegalSpace, setting: str) -> None:
    """A resumed study goes on as the unbroken one would."""
    unbroken = run(space, setting, 12)
    encoding, study = Encoding(space), optuna.create_study()
    points = []
    for number in range(12):
        trial = ask(study, encoding, setting)
        if number == 5:  # the sweep is killed here
            trial.set_user_attr(INTERRUPTED_ATTRIBUTE, True)
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            trial = ask(study, encoding, setting)
        point = encoding.decode(trial.params)
        trial.set_constraint("memory", point["micro_batch_size"] - 2)
        study.tell(trial, time_of(point))
        points.append(point)
    assert points == unbroken


@pytest.mark.parametrize("setting", SAMPLERS, ids=str)
def test_open_trials_are_not_proposed_again(space: LegalSpace, setting: object) -> None:
    encoding, study = Encoding(space), optuna.create_study()
    points = [encoding.decode(ask(study, encoding, setting).params) for _ in range(20)]
    assert len(set(points)) == 20


@pytest.mark.parametrize("setting", SAMPLERS, ids=str)
@pytest.mark.parametrize("told", ["failed", "out of memory"])
def test_a_point_that_did_not_run_is_not_proposed_again(
    space: LegalSpace, setting: object, told: str
) -> None:
    encoding, study = Encoding(space), optuna.create_study()
    points = []
    for number in range(15):
        trial = ask(study, encoding, setting)
        points.append(encoding.decode(trial.params))
        if told == "failed" and number % 2:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        trial.set_constraint("memory", 1.0 if number % 2 else -1.0)
        study.tell(trial, time_of(points[-1]))
    assert len(set(points)) == 15


@pytest.mark.parametrize("setting", ["guided", "tpe"])
def test_it_learns(space: LegalSpace, setting: str) -> None:
    """Beyond its random start, it finds better feasible points than random search does."""

    def best(setting: str, seed: int) -> float:
        feasible = [p for p in run(space, setting, 20, seed) if p["micro_batch_size"] <= 2]
        return min(time_of(point) for point in feasible)

    assert sum(best(setting, s) for s in range(6)) <= sum(best("random", s) for s in range(6))


def test_values_of_any_type_survive_optuna(make_space: Callable[..., LegalSpace]) -> None:
    choices = [1, True, "1", None, 1.5, [2, 6], {"a": 1}, "on", "off", "1:30"]
    for ordered in (False, True):
        space = make_space({"p": {"choices": choices, "ordered": ordered}})
        encoding = Encoding(space)
        for point in space.points:
            assert encoding.decode(encoding.encode(point)) == point


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tpee", "did you mean 'tpe'"),
        ({"_target_": "optuna.samplers.Nope"}, "cannot be imported"),
        ({"_target_": "nope"}, "cannot be imported"),
        ({"_target_": "builtins.dict"}, "is no class of Optuna samplers"),
        ({"_target_": "optuna.samplers.TPESampler", "n_startup": 3}, "does not take"),
        (7, "search.sampler='7' is neither a name nor a mapping.* own; allowed: exhaustive, gp,"),
        (["tpe"], "is neither a name"),
        ({"_target_": ".foo.Bar"}, "cannot be imported"),
        ({"_target_": "optuna.samplers.NSGAIISampler", "population_size": 1}, "does not take"),
    ],
)
def test_a_wrong_sampler_is_named(space: LegalSpace, setting: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_sampler(setting, Encoding(space), 0)
