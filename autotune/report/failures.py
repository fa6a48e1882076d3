"""What came to nothing, by kind: the words that say why, where they are, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.measure.outcome import Failure, Status
from autotune.report.cells import shorten, table
from autotune.report.unnamed_failures import sort_of
from autotune.study.trial_record import TrialRecord

_LONGEST_QUOTE = 200
_TRIALS_SHOWN = 6
_CAME_TO_NOTHING = (Status.FAILED, Status.OOM, Status.HUNG, Status.INFRASTRUCTURE)


def failures_section(records: Sequence[TrialRecord]) -> str:
    """The report's part, empty where there is none; the costliest kind first.

    What was taken over from an older study is not counted: its folders are there.
    """
    by_kind: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.status in _CAME_TO_NOTHING and record.taken_from is None:
            by_kind.setdefault(_kind(record), []).append(record)
    if not by_kind:
        return ""
    kinds = sorted(by_kind, key=lambda kind: -sum(r.cost_s for r in by_kind[kind]))
    header = ["kind", "trials", "time", "the first one's cause", "where", "what to do"]
    return "## What failed, by kind\n\n" + table(header, [_row(k, by_kind[k]) for k in kinds])


def _kind(record: TrialRecord) -> str:
    failure = record.outcome.failure
    return failure.kind if failure is not None else sort_of(record.outcome.reason).kind


def _row(kind: str, records: Sequence[TrialRecord]) -> list[str]:
    first = min(records, key=lambda record: record.trial)
    failure, reason = first.outcome.failure, first.outcome.reason
    return [
        kind,
        _numbers([record.trial for record in records]),
        f"{sum(record.cost_s for record in records):.0f} s",
        shorten(reason, _LONGEST_QUOTE),
        _place(first.trial, failure),
        failure.advice if failure is not None else sort_of(reason).advice,
    ]


def _numbers(trials: Sequence[int]) -> str:
    shown = [str(trial) for trial in sorted(trials)[:_TRIALS_SHOWN]]
    more = len(trials) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def _place(trial: int, failure: Failure | None) -> str:
    """A file of the trial's folder, the folder itself, or what the launcher saw."""
    folder = f"trials/{trial:04d}"
    if failure is None:
        return folder
    is_file = "." in failure.where
    return f"{folder}/{failure.where}" if is_file else failure.where
