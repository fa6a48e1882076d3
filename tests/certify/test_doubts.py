"""Runs that look disturbed, while the search goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from autotune.certify.doubts import next_doubt, steady_seconds
from autotune.certify.results import Results
from autotune.certify.settings import CertifySettings
from autotune.measure.outcome import Outcome, Status
from autotune.search.guided.belief import Knowledge
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord

SPACE = LegalSpace.build(
    SpaceDefinition.parse(
        {
            "parameters": {
                "batch": {"choices": [1, 2, 4, 8], "ordered": True},
                "blocks": {"choices": [0, 1, 2], "ordered": True},
                "order": {"choices": ["none", "bucketed"]},
            }
        },
        {},
    )
)
FASTEST = SPACE.find({"batch": 8, "blocks": 0, "order": "bucketed"})
SLOWEST = SPACE.find({"batch": 1, "blocks": 2, "order": "none"})


def true_s(p: Mapping[str, Any]) -> float:
    bucketed = 0.85 if p["order"] == "bucketed" else 1.0
    return bucketed * (0.3 + 1 / p["batch"] + 0.1 * p["blocks"])


@dataclass
class Night:
    """Every point ran once; the disturbed ones took 1.7 times as long."""

    disturbed: tuple[Point | None, ...] = ()
    settings: CertifySettings = field(default_factory=CertifySettings)
    repeats: tuple[Repeat, ...] = ()

    def record(self, number: int, point: Point, factor: float = 1.0) -> TrialRecord:
        time_s = true_s(point) * factor
        outcome = Outcome(Status.OK, "r", time_s, (0.97 * time_s, 1.03 * time_s), 8)
        return TrialRecord(number, point, outcome, 9.0, number, number + 1, 1, "f")

    @property
    def results(self) -> Results:
        records = [
            self.record(n, p, 1.7 if p in self.disturbed else 1.0)
            for n, p in enumerate(SPACE.points)
        ]
        return Results(records, self.repeats, SPACE.points[0], self.settings)

    def again(self, point: Point) -> None:
        repeat = Repeat(Role.RECHECK, self.record(len(self.repeats), point), "", 0)
        self.repeats = (*self.repeats, repeat)

    def doubt(self, *running: Point) -> Point | None:
        return next_doubt(SPACE, self.results, Knowledge(), running)


def test_steady_runs_raise_no_doubt() -> None:
    assert Night().doubt() is None


def test_a_disturbed_run_that_may_have_hidden_the_best_is_doubted_once() -> None:
    night = Night((FASTEST,))
    doubted = night.doubt()
    assert doubted == FASTEST
    assert night.doubt(doubted) is None  # it runs again already
    night.again(doubted)
    assert night.doubt() is None


def test_a_disturbed_run_of_a_slow_point_costs_no_run() -> None:
    assert Night((SLOWEST,)).doubt() is None


@pytest.mark.parametrize(
    "settings", [CertifySettings(enabled=False), CertifySettings(max_rechecks=0)]
)
def test_whoever_wants_no_repeats_gets_none(settings: CertifySettings) -> None:
    assert Night((FASTEST,), settings).doubt() is None


def test_what_ran_more_than_once_is_known_better() -> None:
    night = Night((FASTEST,))
    assert steady_seconds(SPACE, night.results) == {}
    assert FASTEST is not None
    night.again(FASTEST)
    [(code, seconds)] = steady_seconds(SPACE, night.results).items()
    row = SPACE.encode(FASTEST)
    assert row is not None
    assert code == row.tobytes()
    assert seconds == pytest.approx(true_s(FASTEST), rel=0.02)
