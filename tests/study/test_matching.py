"""Results of an older study with another space, which the trainer knows again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from autotune.config.compose import compose_config
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from launch.reference.config import parse_config
from launch.reference.schema import ConfigError
from launch.trainers.registry import make_trainer
from launch.trainers.sources import Sources

from .older import record, statuses, take

BASE = {"features": {"loss_chunk_size": 64, "offload_blocks": 0}, "training": {"steps": 20}}
PLACES = {
    "loss_chunk_size": "features",
    "offload_blocks": "features",
    "bucket_order": "features",
    "micro_batch_size": "training",
}


def native(values: Mapping[str, Any]) -> dict[str, Any]:
    """As the reference trainer's adapter does it: a point's values laid over the base."""
    config: dict[str, Any] = {group: dict(keys) for group, keys in BASE.items()}
    for name, value in values.items():
        config[PLACES[name]][name] = value
    return config


MICRO = {"choices": [1, 2, 4, 8], "ordered": True}
TIMES = {1: 4.0, 2: 3.0, 4: 2.5, 8: 2.8}


def test_a_new_parameter_that_the_base_configuration_knew(
    make_space: Callable[..., LegalSpace],
) -> None:
    old = [record(n, {"micro_batch_size": m}, t) for n, (m, t) in enumerate(TIMES.items())]
    space = make_space({"loss_chunk_size": {"choices": [0, 64]}, "micro_batch_size": MICRO})
    plan = take(old, space, native=native)
    assert {r.parameters: r.outcome.batch_time_s for r in plan.measured} == {
        Point({"loss_chunk_size": 64, "micro_batch_size": m}): t for m, t in TIMES.items()
    }
    assert "4 of them by what the trainer's configuration says of loss_chunk_size" in (
        plan.explanation
    )
    # Without the trainer it is not known.
    assert take(old, space).measured == ()


def test_a_new_parameter_that_nobody_knows(make_space: Callable[..., LegalSpace]) -> None:
    """The older points are good starts, with what the user runs now."""
    old = [record(n, {"micro_batch_size": m}, t) for n, (m, t) in enumerate(TIMES.items())]
    space = make_space(
        {"micro_batch_size": MICRO, "bucket_order": {"choices": ["none", "bucketing"]}},
        baseline={"bucket_order": "bucketing"},
    )
    plan = take(old, space, native=native)
    assert plan.measured == ()
    assert [dict(p) for p in plan.proposals] == [
        {"micro_batch_size": m, "bucket_order": "bucketing"} for m in (4, 8, 2)
    ]  # 1 is the baseline, which runs first of all
    assert "4 are of points that this space does not have for certain" in plan.explanation


def test_a_parameter_that_is_gone_fits_where_it_was_what_it_is_now(
    make_space: Callable[..., LegalSpace],
) -> None:
    old = [
        record(2 * n + (o > 0), {"micro_batch_size": m, "offload_blocks": o}, t - 0.1 * o)
        for n, (m, t) in enumerate(TIMES.items())
        for o in (0, 2)
    ]
    plan = take(old, make_space({"micro_batch_size": MICRO}), native=native)
    assert {r.parameters["micro_batch_size"]: r.outcome.batch_time_s for r in plan.measured} == (
        TIMES
    )
    assert statuses(plan) == dict.fromkeys((0, 2, 4, 6), "ok")
    assert plan.measured[0].parameters.keys() == {"micro_batch_size"}
    # With offloading they were faster; without it they are measured already.
    assert plan.proposals == ()


def test_a_choice_or_a_condition_that_is_gone(make_space: Callable[..., LegalSpace]) -> None:
    old = [
        record(0, {"micro_batch_size": 8}, 1.0),
        record(1, {"micro_batch_size": 1, "offload_blocks": 2}, 2.0),
        record(2, {"micro_batch_size": 2, "offload_blocks": 0}, 3.0),
    ]
    space = make_space(
        {
            "micro_batch_size": {"choices": [1, 2]},
            "offload_blocks": {"choices": [0, 2], "when": "micro_batch_size > 1"},
        },
        baseline={"micro_batch_size": 2},
    )
    plan = take(old, space, native=native)
    assert statuses(plan) == {2: "ok"}
    # 8 is no choice here. Without its offloading, the other point is legal.
    assert [dict(p) for p in plan.proposals] == [{"micro_batch_size": 1}]
    foreign = take([record(0, {"micro_batch_size": "auto"}, 1.0)], space, native=native)
    assert (foreign.measured, foreign.proposals) == ((), ())


def test_a_configuration_that_the_trainer_refuses_matches_nothing(
    make_space: Callable[..., LegalSpace],
) -> None:
    old = [record(0, {"micro_batch_size": 1}, 1.0)]
    space = make_space({"loss_chunk_size": {"choices": [0, 64]}, "micro_batch_size": MICRO})
    assert take(old, space, native=lambda values: None).measured == ()


def test_the_defaults_of_a_real_trainer() -> None:
    """As if `space/tiny_vlm.yaml` had once had neither loss chunks nor an encoder's layout."""
    config = compose_config(["model=tiny_vlm", "cluster.devices_per_trial=4"]).config
    trainer = make_trainer(config, Sources(None))

    def with_defaults(values: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            return asdict(parse_config(trainer.config(values)))
        except ConfigError:
            return None

    added = ("loss_chunk_size", "encoder_sp_degree", "encoder_micro_batch_scale")
    space = LegalSpace.build(SpaceDefinition.parse(config.space, config.facts))
    older = [p for p in space.points if p["loss_chunk_size"] == 0 and {*encoder(p)} <= {1}]
    old = [
        record(n, {k: v for k, v in p.items() if k not in added}, 1.0) for n, p in enumerate(older)
    ]
    assert [r.parameters for r in take(old, space, native=with_defaults).measured] == older
    # The base configuration alone is silent, so nothing is certain.
    assert take(old, space, native=trainer.config).measured == ()


def encoder(point: Point) -> list[int]:
    """What the point says of the encoder; 1 is the trainer's default of both."""
    return [value for name, value in point.items() if name.startswith("encoder")]
