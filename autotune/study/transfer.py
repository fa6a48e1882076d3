"""Carrying results of an older study into a new one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autotune.measure.outcome import Status
from autotune.search.guided.belief import Belief
from autotune.search.guided.older_study import OlderRun, OlderStudyBelief
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.holding import Holding, hold, under_limit
from autotune.study.identity import Identity
from autotune.study.matching import Matching, Native
from autotune.study.trial_record import TrialRecord

_CONDITIONS = ("model", "trainer", "cluster", "measure")
_DEVICE_MEMORY = "device_memory"
_FIRST_PROPOSALS = 5
_FIRST_BESIDE_BELIEF = 3


@dataclass(frozen=True)
class Transfer:
    """What an older study is worth to a new one.

    measured: results that hold here as they are. proposals: points that were good there
    and are measured here first. explanation: what was done, for a person. belief: what the
    other results say of time and memory, None where that is too little to be of use.
    """

    measured: tuple[TrialRecord, ...]
    proposals: tuple[Point, ...]
    explanation: str
    belief: Belief | None = None


def plan_transfer(
    name: str,
    records: Sequence[TrialRecord],
    old: Identity,
    new: Identity,
    space: LegalSpace,
    memory_limit_bytes: int,
    native: Native | None = None,
    until: float | None = None,
) -> Transfer:
    """What fits is taken as measured, the rest as prior knowledge.

    A result holds here when everything it depends on is the same: model, trainer, cluster,
    measurement and environment. The space and the limit may differ: a point is known again by
    what the trainer is configured with, and the limit is applied anew. What was lost to the
    infrastructure, or refused without a launch, is no result.

    native: of the new study's trainer, None where it cannot be asked. until: seconds since the
    epoch; what ended later is left out, so that a study that goes on plans as when it began.
    """
    changed = _changed(old, new)
    is_same_scale = _is_same_scale(old, new)
    results = [r for r in records if _is_result(r) and (until is None or r.ended_at <= until)]
    matching = Matching(space, native)
    held = Holding(rest=tuple(results))
    if not changed:
        min_steps = int(new.parts["measure"].get("min_steps", 0))
        held = hold(results, matching, memory_limit_bytes, min_steps)
    belief = _belief(held, space, is_same_scale)
    limit = memory_limit_bytes if is_same_scale else None
    most = _FIRST_PROPOSALS if belief is None else _FIRST_BESIDE_BELIEF
    proposals = _proposals(held, matching, limit)[:most]
    return Transfer(
        measured=tuple(
            _carried(record, number, name) for number, record in enumerate(held.measured)
        ),
        proposals=proposals,
        explanation="; ".join(
            _explained(name, len(records), changed, held, len(proposals), belief is not None)
        ),
        belief=belief,
    )


def _is_result(record: TrialRecord) -> bool:
    return record.was_launched and not record.status.may_retry


def _carried(record: TrialRecord, number: int, name: str) -> TrialRecord:
    """The record as one of this study, which expected nothing of it."""
    source = {"study": name, "trial": record.trial}
    return replace(record, trial=number, taken_from=source, gate=None)


def _changed(old: Identity, new: Identity) -> list[str]:
    """The conditions of the measurements that are not the same."""
    changed = [part for part in _CONDITIONS if old.parts.get(part) != new.parts.get(part)]
    return changed if old.environment == new.environment else [*changed, "environment"]


def _is_same_scale(old: Identity, new: Identity) -> bool:
    """Whether seconds and bytes there are seconds and bytes here.

    How much memory a device has, or is held to on a CPU, changes what fits and nothing else.
    """
    before, after = (
        {key: value for key, value in one.parts.get("cluster", {}).items() if key != _DEVICE_MEMORY}
        for one in (old, new)
    )
    return before == after and old.parts.get("model") == new.parts.get("model")


def _belief(held: Holding, space: LegalSpace, is_same_scale: bool) -> Belief | None:
    """From what does not hold, where that is more than what does."""
    timed = sum(record.batch_time is not None for record in held.rest)
    if timed <= len(held.measured):
        return None
    runs = [
        OlderRun(
            record.parameters,
            record.status,
            record.outcome.batch_time_s,
            record.outcome.peak_memory_bytes,
        )
        for record in held.rest
    ]
    return OlderStudyBelief.of(runs, space.parameters, is_same_scale)


def _proposals(held: Holding, matching: Matching, limit_bytes: int | None) -> tuple[Point, ...]:
    """Points here that may be faster than what holds, the best first, beside the baseline.

    limit_bytes: on peak memory, None where peaks there say nothing of peaks here.
    """
    to_beat_s = min((_seconds(r) for r in held.measured if r.status is Status.OK), default=math.inf)
    here = [r if limit_bytes is None else under_limit(r, limit_bytes) for r in held.rest]
    good = [r for r in here if r.status in (Status.OK, Status.STOPPED) and _seconds(r) < to_beat_s]
    # The baseline is run first of all, whatever is known of it.
    measured = {matching.space.baseline, *(record.parameters for record in held.measured)}
    points = [matching.similar(record.parameters) for record in sorted(good, key=_seconds)]
    return tuple(dict.fromkeys(p for p in points if p is not None and p not in measured))


def _seconds(record: TrialRecord) -> float:
    return math.inf if record.outcome.batch_time_s is None else record.outcome.batch_time_s


def _explained(
    name: str, count: int, changed: list[str], held: Holding, proposals: int, has_belief: bool
) -> Iterator[str]:
    """The clauses of the explanation."""
    if changed:
        yield f"{' and '.join(changed)} changed since {name!r}: its results are not mixed in"
    else:
        yield f"{len(held.measured)} of {count} results of {name!r} hold here as measured"
        if elsewhere := len(held.rest) - held.cut_short:
            yield f"{elsewhere} are of points that this space does not have for certain"
    if held.configured:
        names = " and ".join(held.names)
        yield f"{held.configured} of them by what the trainer's configuration says of {names}"
    if held.cut_short:
        yield f"{held.cut_short} ended too early to tell whether they win here"
    if has_belief:
        yield "what the others say of time and memory guides the search"
    if proposals:
        yield f"{proposals} of its best points that are legal here are measured first"
