"""`best.yaml`: the configuration to train with, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.measure.timing import speedup
from autotune.ports import Placement, Trainer
from autotune.space.point import Point
from autotune.study.best import best_record, record_of
from autotune.study.identity import Identity
from autotune.study.trial_record import TrialRecord


@dataclass(frozen=True)
class ExportContext:
    """What an export says besides the results. config_file: where it will lie."""

    study: str
    model: str
    identity: Identity
    trainer: Trainer
    placement: Placement
    memory_limit_bytes: int
    config_file: str


def best_document(
    records: Sequence[TrialRecord], baseline_point: Point, context: ExportContext
) -> dict[str, Any] | None:
    """The content of `best.yaml` (docs/design.md, contract), or None while nothing is feasible."""
    best = best_record(records)
    if best is None:
        return None
    baseline = record_of(records, baseline_point)
    return {
        "study": context.study,
        "trial": best.trial,
        "model": context.model,
        **_measured(best, context.memory_limit_bytes),
        "baseline": None
        if baseline is None
        else {
            "trial": baseline.trial,
            "status": baseline.status.value,
            **_measured(baseline, context.memory_limit_bytes),
        },
        "gain": gain(best, baseline),
        # Set by a certification, which measures finalists and baseline again, interleaved.
        "certified": False,
        "trainer": {
            "name": context.trainer.name,
            "config": context.trainer.config(best.parameters),
            "command": list(
                context.trainer.training_command(context.config_file, context.placement.world_size)
            ),
            "env": {},
        },
        "environment": dict(context.identity.environment),
    }


def gain(best: TrialRecord, baseline: TrialRecord | None) -> dict[str, Any]:
    """How much faster the best is, and whether to keep the baseline.

    The baseline is kept when it is the best itself, or when the interval of the speed-up
    does not lie above 1. A baseline that cannot be used (out of memory) has no speed.
    """
    if baseline is None or not baseline.status.is_usable:
        return {"speedup": None, "ci95": None, "keep_baseline": False}
    base_time, best_time = baseline.batch_time, best.batch_time
    assert base_time is not None, "a usable trial has a time"
    assert best_time is not None, "the best trial has a time"
    if baseline.trial == best.trial:
        return {"speedup": 1.0, "ci95": [1.0, 1.0], "keep_baseline": True}
    found = speedup(base_time, best_time)
    keep = found.ci95 is None or found.ci95[0] <= 1.0
    return {
        "speedup": found.ratio,
        "ci95": None if found.ci95 is None else list(found.ci95),
        "keep_baseline": keep,
    }


def _measured(record: TrialRecord, limit: int) -> dict[str, Any]:
    outcome = record.outcome
    time = record.batch_time
    return {
        "parameters": dict(record.parameters),
        "batch_time": None
        if time is None
        else {
            "mean_s": time.mean_s,
            "ci95_s": None if time.ci95_s is None else list(time.ci95_s),
            "runs": 1,
            "steps": time.steps,
        },
        "peak_memory": {
            "bytes": outcome.peak_memory_bytes,
            "rank": outcome.peak_rank,
            "limit_bytes": limit,
        },
        "breakdown_s": None if outcome.breakdown_s is None else dict(outcome.breakdown_s),
    }
