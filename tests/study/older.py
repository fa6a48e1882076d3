"""Results of an older study, and what a new one takes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotune.measure.outcome import Outcome, Status
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.transfer import Transfer, plan_transfer
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
LARGER = replace(OLD, parts={**PARTS, "model": {"dims": {"num_heads": 12}}})
NEWER = replace(OLD, environment={"torch": "2.14"})
HUGE = 10**12


def record(
    trial: int,
    point: Mapping[str, Any],
    time_s: float | None,
    status: Status = Status.OK,
    peak: int | None = 900,
    **rest: Any,
) -> TrialRecord:
    steps = rest.pop("steps", 8)
    interval = rest.pop("ci95_s", None)
    outcome = Outcome(status, "r", time_s, interval, steps, peak_memory_bytes=peak)
    return replace(TrialRecord(trial, Point(point), outcome, 9, 0, 9, 1, "f"), **rest)


def take(
    records: Sequence[TrialRecord],
    space: LegalSpace,
    new: Identity = OLD,
    limit: int = HUGE,
    **rest: Any,
) -> Transfer:
    return plan_transfer("old", records, OLD, new, space, limit, **rest)


def statuses(plan: Transfer) -> dict[int, str]:
    """By the number that the trial had in the older study."""
    return {r.taken_from["trial"]: r.status.value for r in plan.measured if r.taken_from}
