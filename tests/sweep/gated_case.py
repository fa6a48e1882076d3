"""Points whose peak is known in closed form, and sweeps over them behind the memory gate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.ports import EndKind, TrialRequest
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.paths import StudyPaths
from autotune.study.trial_record import TrialRecord
from launch.simulated import SimulatedTrial

from .conftest import LIMIT, PLAN, RANKS, Bench

PARAMETERS: dict[str, Any] = {
    "batch": {"choices": [1, 2, 4, 8, 16], "ordered": True},
    "split": {"choices": [1, 2, 4], "ordered": True},
    "order": {"choices": ["none", "bucketed"]},
    "blocks": {"choices": [0, 1, 2], "ordered": True},
}
BASELINE = {"batch": 1, "split": 2, "order": "none", "blocks": 0}
VIOLATING = 48  # of 90 points


def peak_of(p: Mapping[str, Any]) -> float:
    """Bytes; nothing lies within 15 % of the limit."""
    return 100 + 750 * p["batch"] / p["split"] * (1 - 0.25 * p["blocks"])


def time_of(p: Mapping[str, Any]) -> float:
    """Seconds: whatever saves memory costs time."""
    bucketed = 0.9 if p["order"] == "bucketed" else 1.0
    return bucketed * (0.5 + 1 / p["batch"] + 0.1 * p["split"] + 0.05 * p["blocks"])


def runs(time_s: float, peak: float) -> SimulatedTrial:
    """A run to its end, with an out-of-memory error far over the limit."""
    if peak > 1.5 * LIMIT:
        error = {"event": "error", "kind": "oom", "message": "no memory"}
        return SimulatedTrial(3.0, [[{"event": "start"}, error]] * RANKS, EndKind.RANK_FAILED)
    steps = [
        {"event": "step", "step": n, "time_s": time_s, "peak_reserved_bytes": round(peak)}
        for n in range(PLAN.total_steps)
    ]
    records = [{"event": "start"}, *steps, {"event": "end"}]
    return SimulatedTrial(5.0 + time_s * PLAN.total_steps, [records] * RANKS)


def behave(point: Point, request: TrialRequest) -> SimulatedTrial:
    return runs(time_of(point), peak_of(point))


def make_space(parameters: dict[str, Any], **rest: Any) -> LegalSpace:
    return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters, **rest}, {}))


SPACE = make_space(PARAMETERS, baseline=BASELINE)


def gated(folder: Path, space: LegalSpace = SPACE) -> Bench:
    """With a database in memory: few of these tests are about what is on the disk."""
    return Bench(StudyPaths(folder), space, storage="sqlite://", gate=True)


def launched(bench: Bench) -> list[TrialRecord]:
    return sorted((r for r in bench.records if r.was_launched), key=lambda r: r.trial)


def skipped(bench: Bench) -> list[TrialRecord]:
    return [r for r in bench.records if not r.was_launched]
