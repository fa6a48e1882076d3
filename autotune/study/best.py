"""What trials of a point, or of a status, came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autotune.measure.outcome import Status
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord


def record_of(records: Iterable[TrialRecord], point: Point) -> TrialRecord | None:
    """The latest result of the point, or None."""
    found = [r for r in records if r.parameters == point]
    return found[-1] if found else None


def is_tried_out(records: Iterable[TrialRecord], legal_count: int | None) -> bool:
    """Whether each legal point has a result, be it that the memory gate refused it.

    legal_count: None where nobody has counted them.
    """
    return legal_count is not None and len({r.parameters for r in records}) >= legal_count


def spent_s(records: Iterable[TrialRecord], status: Status) -> float:
    """Seconds of device time that trials of this status took in this study."""
    return sum(r.cost_s for r in records if r.status is status and r.taken_from is None)


def count_by_status(records: Sequence[TrialRecord]) -> dict[Status, int]:
    """How many trials of each status there are, in the order of `Status`, without zeros."""
    counts = {status: sum(r.status is status for r in records) for status in Status}
    return {status: count for status, count in counts.items() if count}
