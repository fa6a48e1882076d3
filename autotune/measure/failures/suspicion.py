"""Whether memory that ran out says more of the machine than of the point."""

from __future__ import annotations

from autotune.config.quantities import format_bytes
from autotune.measure.failures.evidence import Finding, RankEvidence
from autotune.measure.failures.kinds import FailureKind
from autotune.measure.failures.oom_numbers import OomNumbers

# A driver that refuses much less than it says is free, to a trial that holds next to nothing.
_TINY_SHARE = 0.05
_PLENTY = 2


def suspicion(
    finding: Finding,
    numbers: OomNumbers | None,
    evidence: RankEvidence | None,
    is_baseline: bool,
) -> str | None:
    """Why the machine is suspect, as the end of a sentence; None where the point is to blame.

    finding: of memory that ran out. evidence: of its rank, where it is known.
    """
    if numbers is not None and numbers.is_held_by_others:
        return f"others held {format_bytes(numbers.others or 0)} of the device"
    if numbers is not None and _is_refused(numbers):
        return f"the device refused memory with {format_bytes(numbers.free or 0)} free"
    if finding.kind is FailureKind.DEVICE_OOM and _holds_nothing(finding, numbers, evidence):
        return "the trial had allocated nothing yet"
    if is_baseline:
        return "the baseline is known to fit"
    return None


def _is_refused(numbers: OomNumbers) -> bool:
    if None in (numbers.tried, numbers.free, numbers.own, numbers.capacity):
        return False
    assert numbers.tried is not None
    assert numbers.free is not None
    assert numbers.own is not None
    assert numbers.capacity is not None
    plenty = _PLENTY * numbers.tried <= numbers.free
    return plenty and numbers.own <= _TINY_SHARE * numbers.capacity and numbers.allowed is None


def _holds_nothing(
    finding: Finding, numbers: OomNumbers | None, evidence: RankEvidence | None
) -> bool:
    if evidence is None or evidence.steps > 0 or evidence.held_bytes:
        return False
    if numbers is not None and numbers.reserved is not None:
        # All that is asked for at once may be more than the device has: that is the point's.
        fits = numbers.capacity is None or (numbers.tried or 0) < numbers.capacity
        return numbers.reserved == 0 and fits
    return evidence.held_bytes == 0 or finding.opens_device
