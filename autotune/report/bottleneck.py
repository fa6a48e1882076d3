"""Where the time goes, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.analyze.advice import Advice, bottleneck
from autotune.certify.verdict import Verdict
from autotune.export import scaled_breakdown
from autotune.measure.records import PHASES
from autotune.report.cells import table
from autotune.study.trial_record import TrialRecord

_MOST_ADVICE = 3
_MOST_TECHNIQUES = 4


def bottleneck_section(
    verdict: Verdict | None, baseline: TrialRecord | None, limit_bytes: int, device: str
) -> str:
    """The phases of the baseline and the best, and the bottleneck of each in words."""
    columns = _columns(verdict, baseline)
    if not columns:
        return ""
    text = [
        "## Where the time goes",
        _phases(columns),
        "Communication is the part that compute does not hide, waiting for slower ranks "
        "included; scheduling is the time in which the device waits for the host.",
    ]
    for name, record, breakdown in columns:
        advice = bottleneck(
            breakdown, record.outcome.peak_memory_bytes, limit_bytes, record.parameters, device
        )
        text += [f"### The bottleneck of the {name}", *map(_advice, advice[:_MOST_ADVICE])]
    return "\n\n".join(text)


def _columns(
    verdict: Verdict | None, baseline: TrialRecord | None
) -> list[tuple[str, TrialRecord, Mapping[str, float]]]:
    records = []
    if baseline is not None and baseline.outcome.batch_time_s is not None:
        time_s = baseline.outcome.batch_time_s
        if verdict is not None and verdict.baseline is not None:
            time_s = verdict.baseline.time.mean_s
        records.append(("baseline", baseline, time_s))
    if verdict is not None and (baseline is None or verdict.winner.record.trial != baseline.trial):
        records.append(("best", verdict.winner.record, verdict.winner.time.mean_s))
    return [
        (name, record, breakdown)
        for name, record, time_s in records
        if (breakdown := scaled_breakdown(record, time_s)) is not None
    ]


def _phases(columns: list[tuple[str, TrialRecord, Mapping[str, float]]]) -> str:
    rows = []
    for phase in PHASES:
        row = [phase.replace("_", " ")]
        for _, _, breakdown in columns:
            share = breakdown[phase] / (sum(breakdown.values()) or 1.0)
            row.append(f"{breakdown[phase] * 1e3:.1f} ms ({share:.0%})")
        rows.append(row)
    totals = [f"**{sum(breakdown.values()) * 1e3:.1f} ms**" for _, _, breakdown in columns]
    rows.append(["**per global batch**", *totals])
    return table(["phase", *(name for name, _, _ in columns)], rows)


def _advice(advice: Advice) -> str:
    ways = "\n".join(f"  - {way}" for way in advice.techniques[:_MOST_TECHNIQUES])
    head = f"- **{advice.what}** ({advice.evidence})."
    return f"{head}\n{ways}" if ways else head
