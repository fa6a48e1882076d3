"""How a result is told to Optuna: state, value, violation and attributes of a trial."""

from __future__ import annotations

from collections.abc import Sequence

from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.measure.outcome import Status
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import CHECKED_ATTRIBUTE, INTERRUPTED_ATTRIBUTE
from autotune.study.trial_record import TrialRecord

CONSTRAINT = "memory"
# A violated constraint needs a size; a point that was refused or died before it reported a
# peak is told to be over by this share of the limit.
_LEAST_OVERSHOOT = 1e-3


def slowest(records: Sequence[TrialRecord]) -> float:
    """The slowest batch time of the records in seconds, 1.0 where none was measured."""
    return max((t.mean_s for r in records if (t := r.batch_time) is not None), default=1.0)


def as_trial(record: TrialRecord, encoding: Encoding, limit: int, worst_s: float) -> FrozenTrial:
    """The record as a finished trial.

    limit: bytes that a rank may hold at its peak. worst_s: stands in for a batch time that
    could not be measured, in seconds.
    """
    params = encoding.encode(record.parameters)
    violation = violation_of(record, limit)
    state = state_of(record, violation)
    return create_trial(
        state=state,
        value=value_of(record, worst_s) if state is TrialState.COMPLETE else None,
        params=params,
        distributions={name: encoding.distributions[name] for name in params},
        user_attrs=attributes_of(record),
        constraints=None if violation is None else {CONSTRAINT: violation},
    )


def violation_of(record: TrialRecord, limit: int) -> float | None:
    """How far the peak is over the limit, as a share of it; at most 0 is feasible.

    None for a trial that tells nothing about its point. An out-of-memory error is told as a
    violation: samplers do not see failed trials and would propose the like again.
    """
    peak = record.outcome.peak_memory_bytes
    if not record.was_launched and record.gate is not None:
        peak = record.gate.predicted_peak_bytes
    if record.status.violates_memory:
        return max(((peak or 0) - limit) / limit, _LEAST_OVERSHOOT)
    if record.status in (Status.OK, Status.STOPPED):
        return ((peak or 0) - limit) / limit
    return None


def state_of(record: TrialRecord, violation: float | None) -> TrialState:
    """How Optuna sees the trial: pruned where it was not launched, failed where it tells nothing.

    Told as failed, a point that does not fit would teach samplers nothing.
    """
    if not record.was_launched:
        return TrialState.PRUNED
    return TrialState.FAIL if violation is None else TrialState.COMPLETE


def value_of(record: TrialRecord, worst_s: float) -> float:
    """The batch time in seconds, or what stands in for it."""
    measured = record.outcome.batch_time_s
    return worst_s if measured is None else measured


def attributes_of(record: TrialRecord) -> dict[str, object]:
    """What the trial says besides, for people and their tools."""
    return {
        "status": record.status.value,
        "reason": record.outcome.reason,
        "attempt": record.attempt,
        "peak_memory_bytes": record.outcome.peak_memory_bytes,
        # As people write them: Optuna has the index of an ordered choice.
        "parameters": dict(record.parameters),
        CHECKED_ATTRIBUTE: record.was_checked,
        # False where the value is a stand-in for a time that could not be measured.
        "measured": record.outcome.batch_time_s is not None,
    }


def interruption(reason: str) -> dict[str, object]:
    """The attributes of a trial that ended without a result."""
    return {"status": "interrupted", "reason": reason, INTERRUPTED_ATTRIBUTE: True}


def is_interrupted(trial: FrozenTrial) -> bool:
    """Whether the trial ended without a result; its point may be tried again."""
    return bool(trial.user_attrs.get(INTERRUPTED_ATTRIBUTE))
