"""The keys of replay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotune.errors import UserError
from autotune.replay.noise import RunNoise
from autotune.replay.settings import ReplayConfig, replay_config


def config(*overrides: str) -> ReplayConfig:
    return replay_config(["replay.table=T.csv", *overrides])


def test_the_command_of_the_contract() -> None:
    found = replay_config(
        [
            "replay.table=T.csv",
            "replay.samplers=[guided,tpe,random]",
            "replay.seeds=200",
            "replay.budget=0.1",
            "replay.out=DIR",
        ]
    )
    assert found.table_path == Path("T.csv")
    assert found.named_samplers == {"guided": "guided", "tpe": "tpe", "random": "random"}
    assert list(found.seed_numbers) == list(range(200))
    assert found.evaluations(4362) == 436
    assert found.out_path == Path("DIR")
    assert found.processes == len(os.sched_getaffinity(0))
    assert not found.run_noise.is_planted
    assert found.limit_bytes is None


@pytest.mark.parametrize(
    ("budget", "rows", "evaluations"),
    [
        ("0.1", 45, 4),
        ("0.001", 45, 1),
        ("1", 45, 1),
        ("1.0", 45, 45),
        ("30", 45, 30),
        ("99", 45, 45),
    ],
)
def test_a_budget_is_a_share_or_a_number(budget: str, rows: int, evaluations: int) -> None:
    assert config(f"replay.budget={budget}").evaluations(rows) == evaluations


@pytest.mark.parametrize(
    ("samplers", "named"),
    [
        ("tpe", {"tpe": "tpe"}),
        ("{fast: tpe, slow: gp}", {"fast": "tpe", "slow": "gp"}),
        ("[tpe,{slow: gp}]", {"tpe": "tpe", "slow": "gp"}),
        (
            "[{_target_: optuna.samplers.QMCSampler, scramble: true}]",
            {"QMCSampler": {"_target_": "optuna.samplers.QMCSampler", "scramble": True}},
        ),
        (
            "{_target_: optuna.samplers.QMCSampler}",
            {"QMCSampler": {"_target_": "optuna.samplers.QMCSampler"}},
        ),
        ("{mine: {_target_: a.B}}", {"mine": {"_target_": "a.B"}}),
    ],
)
def test_samplers_are_names_and_mappings(samplers: str, named: dict[str, object]) -> None:
    assert config(f"replay.samplers={samplers}").named_samplers == named


@pytest.mark.parametrize(
    "outliers",
    [
        ["replay.outliers=0.1"],
        ["replay.outliers=0.1", "replay.outlier_factor=1.7"],
        ["replay.outliers={share: 0.1, factor: 1.7}"],
        ["replay.outliers.share=0.1"],
    ],
)
def test_noise_and_outliers(outliers: list[str]) -> None:
    assert config("replay.noise=0.005", *outliers).run_noise == RunNoise(0.005, 0.1, 1.7)


def test_paths_are_taken_as_typed() -> None:
    found = replay_config(["replay.table=a b/c=d, e.json.gz", "replay.out='x y'"])
    assert found.table_path == Path("a b/c=d, e.json.gz")
    assert found.out_path == Path("x y")
    assert replay_config(["replay.table=x/c.v2.json.gz"]).out_path == Path("replays/c")


def test_a_baseline_may_be_given_key_by_key() -> None:
    assert config("replay.baseline={a: 1, b: null}").baseline == {"a": 1, "b": None}
    assert config("replay.baseline.a=1", "replay.baseline.b=x").baseline == {"a": 1, "b": "x"}
    assert config("replay.baseline=median", "~replay.baseline").baseline is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["replay.seedz=3"], "unknown key replay.seedz; did you mean 'seed"),
        (["seeds=3"], "seeds is no key of replay.*did you mean 'replay.seed"),
        (
            ["search.max_trials=3"],
            "search.max_trials is no key of replay, which starts no trial; its keys are "
            "replay.table, replay.samplers, ",
        ),
        (["model=tiny_vlm"], "model is no key of replay.*; its keys are"),
        (["replay.outliers={share: 0.1, relative_sd: 0.5}"], "key replay.outliers.relative_sd; al"),
        (["replay.outlier_factor=1e300"], "replay.outlier_factor=1e.300 must .* at most 1000"),
        (["replay.memory_limit=" + "9" * 400], "replay.memory_limit=9{39}… is more than an exbi"),
        (["replay.memory_limit=" + "9" * 400 + "GiB"], "replay.memory_limit=.* is more than an"),
        (["replay.seeds=0"], "replay.seeds=0 must be at least 1"),
        (["replay.seeds=many"], "replay.seeds='many' must be an integer"),
        (["replay.seeds=1.5"], "replay.seeds=1.5 must be an integer"),
        (["replay.seeds=1,2"], "gives several values; a list is"),
        (["replay.seed=-1"], "replay.seed=-1 must be at least 0"),
        (["replay.seed=4294967295"], "seeds go up to 4294967295"),
        (["replay.jobs=0"], "replay.jobs=0 must be at least 1"),
        (["replay.budget=0"], "replay.budget=0 must be a share of the rows"),
        (["replay.budget=1.5"], "replay.budget=1.5 must be a share of the rows"),
        (["replay.budget=true"], "replay.budget=True must be a share"),
        (["replay.noise=2"], "replay.noise=2.0 must be at least 0 and less than 1"),
        (["replay.noise=x"], "replay.noise='x' must be a number"),
        (["replay.outliers=1.5"], "replay.outliers=1.5 must be at least 0"),
        (["replay.outliers={shar: 0.1}"], "unknown key replay.outliers.shar; did you mean 'share'"),
        (["replay.outliers=0.1x1.7"], "replay.outliers='0.1x1.7' must be a number"),
        (["replay.outlier_factor=0.5"], "replay.outlier_factor=0.5 must be at least 1"),
        (["replay.memory_limit=much"], "replay.memory_limit='much' is not an amount of memory"),
        (["replay.samplers=[]"], "replay.samplers is empty"),
        (["replay.samplers=[tpe,tpe]"], "names 'tpe' twice; give names"),
        (["replay.samplers=tpe,random"], r"a list is 'replay.samplers=\[tpe,random\]'"),
        (["replay.samplers={a: 3}"], "3 is no sampler"),
        (["replay.samplers=[tpe"], "cannot read 'replay.samplers=.tpe'; text is quoted"),
        (["replay.noise=0.1", "replay.noise.sd=1"], "replay.noise has a value and no keys below"),
        (["replay.table="], "replay.table is empty"),
        (["replay=3"], "replay is no key of replay"),
    ],
)
def test_wrong_keys_are_named(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        config(*overrides)


def test_without_a_table_it_asks_for_one() -> None:
    with pytest.raises(UserError, match=r"replay what\? give a recorded table: replay\.table"):
        replay_config([])
