"""What an older study is worth to a new one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autotune.measure.outcome import Outcome, Status
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.identity import Identity, differences
from autotune.study.transfer import plan_transfer
from autotune.study.trial_record import TrialRecord

PARTS: dict[str, Any] = {
    "space": {"parameters": {"a": {"choices": [1, 2]}}},
    "model": {"dims": {"num_heads": 6}},
    "trainer": {"name": "reference"},
    "cluster": {"device": "cpu"},
    "memory": {"limit": 0.9},
    "measure": {"min_steps": 8},
}
OLD = Identity(PARTS, {"torch": "2.13"})


def record(
    trial: int, point: Point, time_s: float | None, status: Status, peak: int
) -> TrialRecord:
    return TrialRecord(
        trial, point, Outcome(status, "r", time_s, None, 8, peak_memory_bytes=peak), 9, 0, 9, 1, "f"
    )


def results(space: LegalSpace) -> list[TrialRecord]:
    a, b, c, d = space.points[:4]
    return [
        record(0, a, 2.0, Status.OK, 900),
        record(2, b, 1.0, Status.OK, 950),
        record(3, c, 0.5, Status.OVER_LIMIT, 1100),
        record(4, d, None, Status.OOM, 1500),
        record(5, Point({"sp_degree": 64, "micro_batch_size": 1}), 0.1, Status.OK, 10),
        record(6, space.points[5], None, Status.INFRASTRUCTURE, 0),
    ]


def test_the_same_machine_and_model_keep_their_results(space: LegalSpace) -> None:
    new = replace(OLD, parts={**PARTS, "space": {"parameters": {}}, "memory": {"limit": 0.8}})
    plan = plan_transfer("old", results(space), OLD, new, space, memory_limit_bytes=920)
    assert [r.trial for r in plan.measured] == [0, 1, 2, 3]
    # The new limit of 920 bytes is applied to what was measured.
    assert [r.status for r in plan.measured] == [
        Status.OK,
        Status.OVER_LIMIT,
        Status.OVER_LIMIT,
        Status.OOM,
    ]
    assert [r.taken_from for r in plan.measured] == [
        {"study": "old", "trial": number} for number in (0, 2, 3, 4)
    ]
    assert not any(r.counts for r in plan.measured)


def test_a_higher_limit_makes_measured_points_feasible(space: LegalSpace) -> None:
    plan = plan_transfer("old", results(space), OLD, OLD, space, memory_limit_bytes=1200)
    assert plan.measured[2].status is Status.OK


def test_another_environment_gives_first_proposals_only(space: LegalSpace) -> None:
    new = replace(OLD, environment={"torch": "2.14"})
    plan = plan_transfer("old", results(space), OLD, new, space, memory_limit_bytes=1200)
    assert plan.measured == ()
    assert plan.proposals == (space.points[1], space.points[0])
    assert "environment changed" in plan.explanation


def test_differences_name_old_and_new_values() -> None:
    parts = {**PARTS, "space": {"parameters": {"a": {"choices": [1, 2, 8]}, "b": {"choices": [1]}}}}
    found = [str(d) for d in differences(OLD, replace(OLD, parts=parts))]
    assert found == [
        "space.parameters.a.choices: was [1,2], is now [1,2,8]",
        'space.parameters.b: was absent, is now {"choices":[1]}',
    ]
    assert differences(OLD, OLD) == []
