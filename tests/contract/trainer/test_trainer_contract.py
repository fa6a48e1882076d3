"""What every trainer holds to (`autotune.ports.Trainer`): pure, whole, and honest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import pytest
import yaml

from autotune.errors import UserError
from autotune.ports import ExportPaths, MeasurementPlan, RankProgram
from autotune.profile_plan import ProfilePlan
from autotune.space.definition import SpaceDefinition
from autotune.space.point import canonical
from autotune.study.yaml_text import to_yaml

EXPORTED = ExportPaths("/study/best.yaml", "/study/best/0001")


class Case(Protocol):
    """See conftest.py."""

    trainer: Any
    folder: Path
    ranks: int
    points: Any
    same: Any
    choices: Any
    wrong: Any
    again: Any


def plan_of(case: Case) -> MeasurementPlan:
    plan: MeasurementPlan = case.trainer.plan(3, 8, 1000)
    return replace(plan, profile=ProfilePlan(steps=1, warmup_steps=1, ranks=(0,)))


def answers(trainer: Any, point: Mapping[str, Any], case: Case) -> str:
    """All that a trainer says of a point, as text."""
    program: RankProgram = trainer.trial_program(point, plan_of(case), Path("/trial"))
    return canonical(
        {
            "config": trainer.config(point),
            "native": trainer.native(point),
            "files": dict(trainer.files(point)),
            "environment": dict(trainer.environment(point)),
            "command": list(trainer.training_command(point, EXPORTED, case.ranks)),
            "refusal": trainer.refusal(point, case.ranks),
            "program": [list(program.argv), str(program.cwd), dict(program.env)],
            "program files": dict(program.files),
            "dims": dict(trainer.dims),
            "fixed": dict(trainer.fixed),
            "rules": [rule.expression.text for rule in trainer.rules],
        }
    )


def on_disk(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_the_same_point_gives_the_same_answers_and_writes_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    before = on_disk(tmp_path)
    first = [answers(case.trainer, point, case) for point in case.points]
    again = [answers(case.again(), point, case) for point in reversed(case.points)]
    assert first == again[::-1]
    for point in case.points:
        other_order = dict(reversed(point.items()))
        assert case.trainer.native(point) == case.trainer.native(other_order)
    assert on_disk(tmp_path) == before


def test_answers_are_the_callers_own(case: Case) -> None:
    """Who changes what was given changes no later answer."""
    point = case.points[0]
    before = answers(case.trainer, point, case)
    case.trainer.config(point).clear()
    for value in case.trainer.config(point).values():
        if isinstance(value, dict):
            value.clear()
    assert answers(case.trainer, point, case) == before


def test_points_are_not_changed(case: Case) -> None:
    for point in case.points:
        given = json.loads(json.dumps(point))
        answers(case.trainer, given, case)
        assert given == point


def test_different_points_are_different_runs(case: Case) -> None:
    natives = [canonical(case.trainer.native(point)) for point in case.points]
    assert len(set(natives)) == len(natives)
    assert "null" not in natives


def test_points_that_say_the_same_are_one_run(case: Case) -> None:
    for one, other in case.same:
        assert case.trainer.native(one) == case.trainer.native(other) is not None


def test_what_the_trainer_lacks_is_no_run(case: Case) -> None:
    assert case.trainer.native({**case.points[0], "no_such_parameter": 1}) is None


def test_choices_that_it_takes(case: Case) -> None:
    case.trainer.check(case.choices)
    for point in case.points:
        assert case.trainer.refusal(point, case.ranks) is None


def test_parameters_and_choices_that_it_does_not_take_are_named(case: Case) -> None:
    for wrong in [{"no_such_parameter": [1]}, *case.wrong]:
        with pytest.raises(UserError) as error:
            case.trainer.check({**case.choices, **wrong})
        assert f"space.parameters.{next(iter(wrong))}" in str(error.value)


def test_rules_hold_for_the_points_with_what_the_files_say(case: Case) -> None:
    """Every name in them is a parameter of the points or one of `fixed`."""
    facts = {
        "model": dict(case.trainer.dims),
        "cluster": {"world_size": case.ranks, "nodes": 1, "devices_per_node": case.ranks},
    }
    parameters = {name: {"choices": list(values)} for name, values in case.choices.items()}
    space = SpaceDefinition.parse({"parameters": parameters}, facts)
    bound = space.with_rules(case.trainer.rules, case.trainer.fixed)
    for rule in bound.rules:
        assert rule.is_trainers
        assert rule.reason
        for point in case.points:
            scope = {**facts, **dict.fromkeys(parameters), **case.trainer.fixed, **point}
            assert rule.expression.holds(scope), (rule.reason, point)


def test_every_name_in_fixed_is_of_use(case: Case) -> None:
    """A name that is neither a parameter nor read by a rule is a mistake."""
    read = {name for rule in case.trainer.rules for name in rule.expression.names}
    for name in case.trainer.fixed:
        if name in read:
            continue
        with pytest.raises(UserError, match="cannot be"):
            case.trainer.check({name: [{}]})


def test_the_configuration_survives_best_yaml(case: Case) -> None:
    for point in case.points:
        config = case.trainer.config(point)
        assert yaml.safe_load(to_yaml(config)) == config
        assert json.loads(json.dumps(config)) == config


def test_a_trial_writes_into_its_folder_alone(case: Case) -> None:
    for point in case.points:
        program = case.trainer.trial_program(point, plan_of(case), Path("/trial"))
        for name in program.files:
            path = PurePosixPath(name)
            assert not path.is_absolute()
            assert ".." not in path.parts
        assert program.cwd.is_absolute()
        assert all(isinstance(value, str) for value in program.env.values())
        assert all(isinstance(word, str) for word in program.argv)
        # What the ranks read is there: files that the words name are written or the user's own.
        for word in program.argv:
            if word.startswith("/trial/"):
                assert word.removeprefix("/trial/") in program.files


def test_exported_files_have_names_alone(case: Case) -> None:
    for point in case.points:
        for name, text in case.trainer.files(point).items():
            assert PurePosixPath(name).name == name
            assert isinstance(text, str)
        words = case.trainer.training_command(point, EXPORTED, case.ranks)
        for word in words:
            if word.startswith("/study/best/"):
                assert PurePosixPath(word).name in case.trainer.files(point)


@pytest.mark.parametrize(("warmup", "least", "most"), [(0, 2, 30), (3, 8, 17), (5, 9, 9000)])
def test_steps_are_whole_passes_over_the_window(
    case: Case, warmup: int, least: int, most: int
) -> None:
    plan = case.trainer.plan(warmup, least, most)
    assert plan.measured_steps % plan.window_steps == 0
    assert plan.warmup_steps % plan.window_steps == 0
    assert plan.warmup_steps >= warmup
    assert least <= plan.measured_steps <= most
    assert plan.profile is None


def test_steps_that_do_not_fit_are_refused(case: Case) -> None:
    window = case.trainer.plan(0, 2, 1000).window_steps
    if window > 1:
        with pytest.raises(UserError, match=r"give measure\.max_steps="):
            case.trainer.plan(0, 1, window - 1)


def test_the_interpreter_is_this_one_unless_another_is_given(case: Case, python: str) -> None:
    program = case.trainer.trial_program(case.points[0], plan_of(case), Path("/trial"))
    assert program.argv[0] == python


def test_what_it_needs_is_named(case: Case) -> None:
    assert case.trainer.name
    for package in (*case.trainer.needs, *case.trainer.versions):
        assert package.isidentifier()
