"""Profiles keep to the disk budget, and those that matter stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.outcome import Outcome, Status
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from autotune.study.profiles import ProfileBudget
from autotune.study.trial_record import TrialRecord

SIZE = 1000
TIMES = [2.0, 1.0, 3.0, None, 1.5]


def point(number: int) -> Point:
    return Point({"n": number})


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    """Five trials with a profile of 1000 bytes each; trial 1 is the best, 0 the baseline."""
    paths = StudyPaths(tmp_path)
    for number in range(len(TIMES)):
        folder = paths.trial(number) / "profile" / "inner"
        folder.mkdir(parents=True)
        (folder / "trace.json").write_bytes(b"x" * SIZE)
    return paths


RECORDS = [
    TrialRecord(n, point(n), Outcome(Status.OK, "", time), 1.0, 0.0, 1.0, 1, "")
    for n, time in enumerate(TIMES)
]
KEEP = {point(0), point(1)}


def left(paths: StudyPaths) -> list[int]:
    return [n for n in range(len(TIMES)) if (paths.trial(n) / "profile").exists()]


def test_within_the_budget_nothing_goes(paths: StudyPaths) -> None:
    budget = ProfileBudget(paths, 5 * SIZE)
    assert budget.make_room(RECORDS, KEEP) == []
    assert left(paths) == [0, 1, 2, 3, 4]


def test_the_slowest_go_first(paths: StudyPaths) -> None:
    [said] = ProfileBudget(paths, 3 * SIZE).make_room(RECORDS, KEEP)
    assert left(paths) == [0, 1, 4]
    assert "profiles of 2 slower trials were removed" in said


def test_what_somebody_asked_for_stays(paths: StudyPaths) -> None:
    (paths.trial(3) / "profile" / "request.json").write_text("{}")
    ProfileBudget(paths, 3 * SIZE + 100).make_room(RECORDS, KEEP)
    assert left(paths) == [0, 1, 3]


def test_when_only_those_are_left_that_must_stay_no_more_are_collected(paths: StudyPaths) -> None:
    budget = ProfileBudget(paths, SIZE)
    said = budget.make_room(RECORDS, KEEP)
    assert left(paths) == [0, 1]
    assert budget.is_used_up
    assert "no more are collected" in said[-1]
    assert budget.make_room(RECORDS, KEEP) == []  # said once
