"""Carrying results of an older study into a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.measure.judge import apply_limit
from autotune.measure.outcome import Status
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.trial_record import TrialRecord

_FIRST_PROPOSALS = 5


@dataclass(frozen=True)
class Transfer:
    """What an older study is worth to a new one.

    measured: results that hold here as they are. proposals: points that were good there
    and are measured here first. explanation: what was done, for a person.
    """

    measured: tuple[TrialRecord, ...]
    proposals: tuple[Point, ...]
    explanation: str


def plan_transfer(
    name: str,
    records: Sequence[TrialRecord],
    old: Identity,
    new: Identity,
    space: LegalSpace,
    memory_limit_bytes: int,
) -> Transfer:
    """What fits is taken as measured, the rest as first proposals.

    A result holds here when everything it depends on is the same: model, trainer, cluster,
    measurement and environment. The space and the limit may differ: illegal points are left
    out, and the limit is applied anew.
    """
    legal = [r for r in records if space.find(r.parameters) is not None and not r.status.may_retry]
    changed = [
        part
        for part in ("model", "trainer", "cluster", "measure")
        if old.parts.get(part) != new.parts.get(part)
    ]
    if old.environment != new.environment:
        changed.append("environment")
    if changed:
        good = sorted(
            (r for r in legal if r.status is Status.OK), key=lambda r: r.outcome.batch_time_s or 0.0
        )
        proposals = tuple(dict.fromkeys(r.parameters for r in good[:_FIRST_PROPOSALS]))
        explanation = (
            f"{' and '.join(changed)} changed since {name!r}: its results are not mixed in; "
            f"its {len(proposals)} best points that are legal here are measured first"
        )
        return Transfer((), proposals, explanation)
    latest = {record.parameters: record for record in legal}
    measured = tuple(
        _carried(record, number, name, memory_limit_bytes)
        for number, record in enumerate(latest.values())
    )
    explanation = f"{len(measured)} of {len(records)} results of {name!r} hold here as measured"
    return Transfer(measured, (), explanation)


def _carried(record: TrialRecord, number: int, name: str, limit: int) -> TrialRecord:
    outcome, peak = record.outcome, record.outcome.peak_memory_bytes
    if outcome.status in (Status.OK, Status.OVER_LIMIT) and peak is not None:
        outcome = apply_limit(outcome, peak, limit)
    source = {"study": name, "trial": record.trial}
    return replace(record, trial=number, outcome=outcome, taken_from=source)
