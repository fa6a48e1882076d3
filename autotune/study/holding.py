"""Which results of an older study hold in a new one that was made under the same conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.measure.judge import apply_limit
from autotune.measure.outcome import Status
from autotune.space.point import Point
from autotune.study.matching import Matching
from autotune.study.trial_record import TrialRecord


@dataclass(frozen=True)
class Holding:
    """measured: results that hold, with their points and statuses here. rest: as they were.

    configured: how many of the measured have another point here, that the trainer runs the
    same; names: the parameters that tell the two apart. cut_short: how many of the rest ended
    before it was known that they lose against what holds, or how long they take.
    """

    measured: tuple[TrialRecord, ...] = ()
    rest: tuple[TrialRecord, ...] = ()
    configured: int = 0
    names: tuple[str, ...] = ()
    cut_short: int = 0


def hold(
    records: Sequence[TrialRecord], matching: Matching, limit_bytes: int, min_steps: int
) -> Holding:
    """Sorts results. Of several of one point the latest counts.

    limit_bytes: on peak memory, here. min_steps: scored steps of a measurement.
    """
    points = [matching.same_run(record.parameters) for record in records]
    latest = {
        point: record for point, record in zip(points, records, strict=True) if point is not None
    }
    here = {
        point: replace(under_limit(record, limit_bytes), parameters=point)
        for point, record in latest.items()
    }
    to_beat_s = _to_beat_s(records, points, here)
    settled = {p: r for p, r in here.items() if _is_settled(r, min_steps, to_beat_s)}
    elsewhere = [r for point, r in zip(points, records, strict=True) if point is None]
    open_again = [record for point, record in latest.items() if point not in settled]
    others = {p: latest[p].parameters for p in settled if p != latest[p].parameters}
    names = {name for point, old in others.items() for name in point.keys() ^ old.keys()}
    return Holding(
        measured=tuple(settled.values()),
        rest=(*elsewhere, *open_again),
        configured=len(others),
        names=tuple(sorted(names)),
        cut_short=len(open_again),
    )


def under_limit(record: TrialRecord, limit_bytes: int) -> TrialRecord:
    """The result under another limit on peak memory.

    What ran out of memory did so on the device, whatever the limit.
    """
    outcome, peak = record.outcome, record.outcome.peak_memory_bytes
    if peak is None or outcome.status not in (Status.OK, Status.OVER_LIMIT, Status.STOPPED):
        return record
    if outcome.status is Status.STOPPED and peak <= limit_bytes:
        return record
    return replace(record, outcome=apply_limit(outcome, peak, limit_bytes))


def _to_beat_s(
    records: Sequence[TrialRecord],
    points: Sequence[Point | None],
    here: Mapping[Point, TrialRecord],
) -> float:
    """The seconds beyond which a run that was stopped has lost here too."""
    timed = [n for n, record in enumerate(records) if _is_timed(record)]
    won = min(timed, key=lambda n: _ends(records[n])[1], default=None)
    winner = None if won is None else points[won]
    if winner is not None and _is_timed(here[winner]):
        return 0.0  # what it lost against is here
    return min((_ends(r)[1] for r in here.values() if _is_timed(r)), default=math.inf)


def _is_settled(record: TrialRecord, min_steps: int, to_beat_s: float) -> bool:
    """Whether the result needs no further run."""
    outcome = record.outcome
    if outcome.status is Status.OK:  # over the older limit it may have been ended early
        steps = outcome.steps + outcome.slow_steps + outcome.warmup_steps
        return outcome.batch_time_s is not None and steps >= min_steps
    if outcome.status is Status.STOPPED:
        return _ends(record)[0] > to_beat_s
    return True


def _is_timed(record: TrialRecord) -> bool:
    return record.status is Status.OK and record.outcome.batch_time_s is not None


def _ends(record: TrialRecord) -> tuple[float, float]:
    """Of the interval in seconds, both the mean where there is none."""
    mean = record.outcome.batch_time_s or 0.0
    return record.outcome.batch_time_ci95_s or (mean, mean)
