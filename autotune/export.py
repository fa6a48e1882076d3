"""`best.yaml`: the configuration to train with, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.certify.results import Results
from autotune.certify.verdict import Measured, Verdict
from autotune.ports import ExportPaths, Placement, Trainer
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.trial_record import TrialRecord


@dataclass(frozen=True)
class ExportContext:
    """What an export says besides the results. exported: where it will lie."""

    study: str
    model: str
    identity: Identity
    trainer: Trainer
    placement: Placement
    memory_limit_bytes: int
    exported: ExportPaths


def best_document(verdict: Verdict, results: Results, context: ExportContext) -> dict[str, Any]:
    """The content of `best.yaml` (docs/design.md, contract).

    Once a certification has shown no gain outside the noise, the baseline itself is exported,
    and the fastest other point is told beside it.
    """
    winner = verdict.winner
    return {
        "study": context.study,
        "trial": winner.record.trial,
        "model": context.model,
        **_measured(winner, results, context.memory_limit_bytes),
        "baseline": _baseline(verdict, results, context.memory_limit_bytes),
        "gain": _gain(verdict),
        "certified": verdict.certified,
        "certification": _certification(verdict),
        "trainer": {
            "name": context.trainer.name,
            "config": context.trainer.config(winner.point),
            "command": list(
                context.trainer.training_command(
                    winner.point, context.exported, context.placement.world_size
                )
            ),
            "env": dict(context.trainer.environment(winner.point)),
        },
        "environment": dict(context.identity.environment),
    }


def _gain(verdict: Verdict) -> dict[str, Any]:
    """How much faster than the baseline the fastest other point is, and whether that counts.

    trial: of that point, which is not the exported one where the baseline is kept.
    The baseline is kept when nothing is faster, or when the interval of the speed-up does not
    lie above 1. A baseline that cannot be used (out of memory) has no speed.
    """
    gain = verdict.gain
    challenger, whose = verdict.challenger, verdict.winner
    if challenger is not None and challenger.speedup == gain:
        whose = challenger
    return {
        "trial": whose.record.trial,
        "speedup": None if gain is None else gain.ratio,
        "ci95": None if gain is None or gain.ci95 is None else list(gain.ci95),
        "keep_baseline": verdict.keep_baseline,
    }


def _certification(verdict: Verdict) -> dict[str, Any] | None:
    """Who ran against whom, None before a contest."""
    if not verdict.finalists:
        return None
    return {
        "rounds": verdict.rounds,
        "finalists": [
            {
                "trial": finalist.record.trial,
                "parameters": dict(finalist.point),
                "batch_time": _time(finalist),
                "speedup": None if finalist.speedup is None else finalist.speedup.ratio,
                "ci95": None
                if finalist.speedup is None or finalist.speedup.ci95 is None
                else list(finalist.speedup.ci95),
                "disturbed_runs": finalist.disturbed,
            }
            for finalist in verdict.finalists
        ],
    }


def _baseline(verdict: Verdict, results: Results, limit: int) -> dict[str, Any] | None:
    if verdict.baseline is not None:
        record = verdict.baseline.record
        document = _measured(verdict.baseline, results, limit)
        return {"trial": record.trial, "status": record.status.value, **document}
    tried = [record for record in results.records if record.parameters == results.baseline]
    if not tried:
        return None
    return {
        "trial": tried[-1].trial,
        "status": tried[-1].status.value,
        "parameters": dict(results.baseline),
        "batch_time": None,
        "peak_memory": _peak(results, results.baseline, limit),
        "breakdown_s": None,
    }


def _measured(measured: Measured, results: Results, limit: int) -> dict[str, Any]:
    return {
        "parameters": dict(measured.point),
        "batch_time": _time(measured),
        "peak_memory": _peak(results, measured.point, limit),
        "breakdown_s": scaled_breakdown(measured.record, measured.time.mean_s),
    }


def _time(measured: Measured) -> dict[str, Any]:
    time = measured.time
    return {
        "mean_s": time.mean_s,
        "ci95_s": None if time.ci95_s is None else list(time.ci95_s),
        "runs": measured.runs,
        "steps": time.steps,
    }


def scaled_breakdown(record: TrialRecord, mean_s: float) -> Mapping[str, float] | None:
    """A trial's phases, in seconds, as shares of the time that all runs of its point gave."""
    outcome = record.outcome
    if outcome.breakdown_s is None or outcome.batch_time_s is None:
        return None
    scale = mean_s / outcome.batch_time_s
    return {phase: seconds * scale for phase, seconds in outcome.breakdown_s.items()}


def _peak(results: Results, point: Point, limit: int) -> dict[str, Any]:
    """The largest peak of all runs of the point."""
    runs = [*results.records, *(repeat.record for repeat in results.repeats)]
    outcomes = [run.outcome for run in runs if run.parameters == point]
    known = [o for o in outcomes if o.peak_memory_bytes is not None]
    largest = max(known, key=lambda o: o.peak_memory_bytes or 0, default=None)
    device = [o.peak_device_bytes for o in known if o.peak_device_bytes is not None]
    return {
        "bytes": None if largest is None else largest.peak_memory_bytes,
        "rank": None if largest is None else largest.peak_rank,
        "device_bytes": max(device, default=None),
        "limit_bytes": limit,
    }
