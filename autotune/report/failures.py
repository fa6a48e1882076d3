"""What came to nothing, by kind: the words that say why, where they are, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.measure.outcome import Failure
from autotune.report.cells import shorten, table
from autotune.study.trial_record import TrialRecord

_LONGEST_QUOTE = 200
_TRIALS_SHOWN = 6


def failures_section(records: Sequence[TrialRecord]) -> str:
    """The report's part, empty where there is none; the costliest kind first.

    What was taken over from an older study is not counted: its folders are there.
    """
    by_kind: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.outcome.failure is not None and record.taken_from is None:
            by_kind.setdefault(record.outcome.failure.kind, []).append(record)
    if not by_kind:
        return ""
    kinds = sorted(by_kind, key=lambda kind: -sum(r.cost_s for r in by_kind[kind]))
    header = ["kind", "trials", "time", "the first one's cause", "where", "what to do"]
    return "## What failed, by kind\n\n" + table(header, [_row(k, by_kind[k]) for k in kinds])


def _row(kind: str, records: Sequence[TrialRecord]) -> list[str]:
    first = min(records, key=lambda record: record.trial)
    failure = first.outcome.failure
    assert failure is not None
    return [
        kind,
        _numbers([record.trial for record in records]),
        f"{sum(record.cost_s for record in records):.0f} s",
        shorten(first.outcome.reason, _LONGEST_QUOTE),
        _place(first.trial, failure),
        failure.advice,
    ]


def _numbers(trials: Sequence[int]) -> str:
    shown = [str(trial) for trial in sorted(trials)[:_TRIALS_SHOWN]]
    more = len(trials) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def _place(trial: int, failure: Failure) -> str:
    """A file of the trial's folder, or what the launcher saw."""
    is_file = "." in failure.where
    return f"trials/{trial:04d}/{failure.where}" if is_file else failure.where
