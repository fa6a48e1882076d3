"""What a measuring trial of the reference trainer runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.errors import UserError
from autotune.profile_plan import ProfilePlan
from launch.reference.config import parse_config
from launch.trainers.reference import ReferenceTrainer

TRAINER = ReferenceTrainer(
    base={
        "model": {
            "kind": "dit",
            "hidden_size": 32,
            "num_layers": 3,
            "num_heads": 4,
            "ffn_size": 64,
            "patch_size": 2,
        },
        "data": {"num_samples": 12, "frames": [1, 6], "frame_size": [4, 10]},
        "training": {"global_batch_size": 4, "micro_batch_size": 1, "steps": 20},
    },
    device="cpu",
    device_memory_bytes=1 << 30,
)


def trial_config(profile: ProfilePlan | None) -> dict[str, Any]:
    plan = dataclasses.replace(TRAINER.plan(1, 1, 7), profile=profile)
    program = TRAINER.trial_program({"sp_degree": 1}, plan, Path("/trial"))
    content: dict[str, Any] = yaml.safe_load(program.files["config.yaml"])
    return content


@pytest.mark.parametrize(
    ("asked", "planned"),
    [((0, 1, 3), (3, 3)), ((1, 1, 7), (3, 6)), ((4, 3, 9), (6, 9)), ((3, 4, 11), (3, 9))],
)
def test_a_trial_makes_as_many_whole_passes_as_may_be(
    asked: tuple[int, int, int], planned: tuple[int, int]
) -> None:
    plan = TRAINER.plan(*asked)
    assert plan.window_steps == 3
    assert (plan.warmup_steps, plan.measured_steps) == planned


def test_too_few_steps_for_a_measurement_are_refused() -> None:
    with pytest.raises(UserError) as error:
        TRAINER.plan(1, 4, 5)
    assert "measure.max_steps=5" in str(error.value)
    assert "give measure.max_steps=6 or more" in str(error.value)


def test_the_profile_comes_on_top_of_the_measured_steps() -> None:
    plan = ProfilePlan(steps=2, warmup_steps=1, ranks=(0, 3), profiler_level="Level1")
    content = trial_config(plan)
    assert content["training"]["steps"] == 3 + 6 + 3
    config = parse_config(content)
    assert config.measurement is not None
    assert config.measurement.memory_steps == 3
    assert config.measurement.profile is not None
    assert dataclasses.asdict(config.measurement.profile) == dataclasses.asdict(plan)


def test_without_a_profile_there_is_none() -> None:
    content = trial_config(None)
    assert content["training"]["steps"] == 3 + 6
    assert content["measurement"] == {"memory_steps": 3}


def test_what_is_exported_measures_nothing() -> None:
    exported = TRAINER.config({"sp_degree": 1})
    assert "measurement" not in exported
    assert exported["training"]["steps"] == 20
    assert parse_config(exported).measurement is None


def test_its_ranks_end_when_they_are_asked_to() -> None:
    assert TRAINER.heeds_finish


def test_what_the_trainer_runs_with_is_equal_for_values_that_change_nothing() -> None:
    """A default that is said and one that is not are the same run; other values are not."""
    plain = TRAINER.native({"micro_batch_size": 1})
    assert plain is not None
    assert TRAINER.native({"micro_batch_size": 1, "sp_degree": 1, "offload_blocks": 0}) == plain
    assert TRAINER.native({"micro_batch_size": 1, "offload_blocks": 1}) != plain


@pytest.mark.parametrize("values", [{"nope": 1}, {"micro_batch_size": 0}, {"sp_degree": "x"}])
def test_values_that_the_trainer_does_not_take_are_no_run(values: dict[str, Any]) -> None:
    assert TRAINER.native(values) is None
