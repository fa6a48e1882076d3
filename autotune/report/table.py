"""Every trial as a row."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from autotune.measure.records import PHASES
from autotune.space.definition import RESULT_COLUMNS
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord


def trials_table(
    records: Sequence[TrialRecord], parameters: Sequence[str], baseline: Point
) -> pd.DataFrame:
    """One row a finished trial, by number; a column a parameter, empty where it is inactive.

    Times are in seconds, memory in bytes. The columns are those of a replay table, with
    more behind them. Of a point that was refused first and launched later only the launch is
    told: a table has one result a point.
    """
    launched = {record.parameters for record in records if record.was_launched}
    told = [r for r in records if r.was_launched or r.parameters not in launched]
    rows = [
        {**_row(record, parameters), "baseline": record.parameters == baseline}
        for record in sorted(told, key=lambda r: r.trial)
    ]
    columns = ["trial", *parameters, *_RESULTS, *(f"{phase}_s" for phase in PHASES)]
    # As objects, or a parameter that is inactive somewhere would turn 2 into 2.0.
    return pd.DataFrame(rows, columns=columns, dtype=object)


_RESULTS = RESULT_COLUMNS[1:]


def _row(record: TrialRecord, parameters: Sequence[str]) -> dict[str, object]:
    outcome = record.outcome
    low, high = outcome.batch_time_ci95_s or (None, None)
    return {
        "trial": record.trial,
        **{name: record.parameters.get(name) for name in parameters},
        "status": outcome.status.value,
        "batch_time_s": outcome.batch_time_s,
        "batch_time_low_s": low,
        "batch_time_high_s": high,
        "steps": outcome.steps,
        "peak_memory_bytes": outcome.peak_memory_bytes,
        "cost_s": record.cost_s,
        "attempt": record.attempt,
        "taken_from": None if record.taken_from is None else record.taken_from["study"],
        "reason": outcome.reason,
        **{f"{phase}_s": (outcome.breakdown_s or {}).get(phase) for phase in PHASES},
    }
