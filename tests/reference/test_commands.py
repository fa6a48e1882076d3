"""Commands in a trial's folder, as the ranks find them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from autotune.profile_plan import ProfilePlan
from launch.profile_request import request_profile
from launch.rank.commands import Commands
from launch.rank.profile_options import ProfileOptions
from launch.rank.recorder import Recorder
from launch.trial_files import ask_to_finish


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    recorder = Recorder(str(tmp_path / "rank0.jsonl"))
    return Commands(recorder.folder, recorder)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rank0.jsonl").read_text().splitlines()]


def ask(folder: Path, text: str) -> None:
    new = folder / "new"
    new.write_text(text, encoding="utf-8")
    (folder / "profile").mkdir(exist_ok=True)
    new.replace(folder / "profile" / "request.json")


def test_finish_is_heard_and_never_taken_back(commands: Commands, tmp_path: Path) -> None:
    assert not commands.finish_asked()
    ask_to_finish(tmp_path)
    assert commands.finish_asked()
    (tmp_path / "finish").unlink()
    assert commands.finish_asked()


def test_what_the_launcher_asks_for_arrives_as_it_was_asked(
    commands: Commands, tmp_path: Path
) -> None:
    assert commands.new_request() is None
    plan = ProfilePlan(
        steps=3,
        warmup_steps=2,
        ranks=(0, 5),
        with_cpu=False,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
        profiler_level="Level2",
        aic_metrics="Memory",
        l2_cache=True,
        record_op_args=True,
        data_simplification=False,
        export_type="Db",
        gc_detect_threshold=2.5,
    )
    name = request_profile(tmp_path, plan)
    request = commands.new_request()
    assert request is not None
    assert request.id == name
    assert dataclasses.asdict(request.options) == dataclasses.asdict(plan)


def test_options_of_ranks_and_launcher_are_the_same() -> None:
    """`launch.rank` cannot import `autotune`, so it says them again."""
    assert dataclasses.asdict(ProfileOptions()) == dataclasses.asdict(ProfilePlan())
    assert [field.name for field in dataclasses.fields(ProfileOptions)] == [
        field.name for field in dataclasses.fields(ProfilePlan)
    ]


def test_a_request_is_served_once(commands: Commands, tmp_path: Path) -> None:
    first = request_profile(tmp_path, ProfilePlan())
    found = commands.new_request()
    assert found is not None
    assert found.id == first
    assert commands.new_request() is None
    ask(tmp_path, json.dumps({"id": first, "steps": 2}))  # written again, the same id
    assert commands.new_request() is None
    second = request_profile(tmp_path, ProfilePlan())
    again = commands.new_request()
    assert again is not None
    assert again.id == second != first


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"id": "a", "steps"', (None, "profile/request.json cannot be read")),
        ("[1]", (None, 'profile/request.json has no "id"')),
        ('{"steps": 1}', (None, 'profile/request.json has no "id"')),
        ('{"id": "a", "setps": 1}', ("a", "unknown option setps; allowed: steps")),
        ('{"id": "a", "steps": 0}', ("a", "steps must be at least 1, got 0")),
        ('{"id": "a", "ranks": []}', ("a", "ranks must be rank numbers or [-1] for all")),
        ('{"id": "a", "ranks": [true]}', ("a", "ranks must be a list of whole numbers")),
        ("\xff\x00", (None, "profile/request.json cannot be read")),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_once(
    commands: Commands, tmp_path: Path, text: str, answer: tuple[str | None, str]
) -> None:
    ask(tmp_path, text)
    assert commands.new_request() is None
    assert commands.new_request() is None
    (record,) = records(tmp_path)
    assert (record["event"], record["id"]) == ("profile", answer[0])
    assert answer[1] in record["error"]


def test_outside_a_trial_there_are_no_commands() -> None:
    recorder = Recorder(None)
    commands = Commands(recorder.folder, recorder)
    assert not commands.finish_asked()
    assert commands.new_request() is None
