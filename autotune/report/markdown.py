"""The report for people, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.certify.results import Results
from autotune.certify.verdict import Verdict, verdict_of
from autotune.config.quantities import format_bytes
from autotune.measure.outcome import Status
from autotune.report.bottleneck import bottleneck_section
from autotune.report.cells import (
    interval_text,
    memory_text,
    shorten,
    table,
    time_text,
    value_text,
)
from autotune.report.certification import certification_section, drift_section
from autotune.report.failures import failures_section
from autotune.report.gate import gate_section
from autotune.report.night import night_section
from autotune.space.point import Point, plain
from autotune.study.best import count_by_status, is_tried_out, record_of, spent_s
from autotune.study.events import Event
from autotune.study.trial_record import TrialRecord

_FASTEST = 10


@dataclass(frozen=True)
class ReportContext:
    """What a report says besides the results.

    legal_points: their number, for a person; legal_count: the number where it is known.
    events: what was said while the study ran.
    """

    study: str
    model: str
    baseline_point: Point
    memory_limit_bytes: int
    device_memory_bytes: int | None
    legal_points: str
    steps: str
    study_dir: str
    device: str
    environment: Mapping[str, Any]
    events: Sequence[Event] = ()
    legal_count: int | None = None


def report_markdown(results: Results, context: ReportContext) -> str:
    """The whole report."""
    records, verdict = results.records, verdict_of(results)
    baseline = record_of(records, context.baseline_point)
    sections = [
        f"# {context.study}" + ("" if context.study == context.model else f": {context.model}"),
        _verdict(verdict, baseline, context),
        _changes(verdict, context.baseline_point),
        certification_section(verdict, results),
        bottleneck_section(verdict, baseline, context.memory_limit_bytes, context.device),
        _fastest(records, context),
        drift_section(results),
        _losses(results),
        failures_section(records),
        night_section(results, context.events),
        gate_section(records),
        _next(verdict, records, context),
        _trials(records, context),
        _environment(context),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _verdict(verdict: Verdict | None, baseline: TrialRecord | None, context: ReportContext) -> str:
    if verdict is None:
        return (
            "**No feasible configuration was found.** The limit on peak memory is "
            f"{format_bytes(context.memory_limit_bytes)} a device; what was tried is below."
        )
    winner, basis = verdict.winner, _brink(verdict.winner.record) + _basis(verdict)
    head = (
        f"The best is trial {winner.record.trial}: **{winner.time.mean_s * 1e3:.1f} ms** per "
        "global batch"
    )
    device = context.device_memory_bytes
    # A program that is not held to the device may be given more than that has.
    shown = device is not None and device >= context.memory_limit_bytes
    of_device = f" on a device of {format_bytes(device or 0)}" if shown else ""
    peak = winner.record.outcome.peak_memory_bytes
    memory = (
        f"peak memory {'unknown' if peak is None else format_bytes(peak)} of "
        f"{format_bytes(context.memory_limit_bytes)} allowed{of_device}"
    )
    if winner.point == context.baseline_point:
        return f"**Keep your baseline**: {challenge(verdict)}. {head}, {memory}.{basis}"
    if verdict.gain is None:
        return f"{head}, {memory}. {_unusable(baseline)}{basis}"
    interval = verdict.gain.ci95
    between = "" if interval is None else f" (95 % interval {interval[0]:.2f} to {interval[1]:.2f})"
    text = f"{head}, **{verdict.gain.ratio:.2f} times as fast as the baseline**{between}, {memory}."
    if interval is None:
        text += " Without an interval it may be noise: **keep your baseline**."
    elif verdict.keep_baseline:
        text += " The difference is within the noise: **keep your baseline**."
    return f"{text}{basis}"


def _brink(record: TrialRecord) -> str:
    """What follows where the allocator only just found the memory."""
    if not record.outcome.alloc_retries:
        return ""
    return (
        f" In its run an allocator found no memory {record.outcome.alloc_retries} times, gave its "
        "pool back and tried again: it runs at the brink of memory, and may stall or fail in a "
        "long training. A lower `memory.limit` keeps the search away from there."
    )


def challenge(verdict: Verdict) -> str:
    """What the fastest other point is worth."""
    challenger = verdict.challenger
    found = None if challenger is None else challenger.speedup
    if challenger is None or found is None or found.ci95 is None:
        return "nothing that was tried is known to be faster"
    low, high = found.ci95
    noise = ", which may be noise" if high > 1 else ""
    return (
        f"the fastest other point, trial {challenger.record.trial}, is {found.ratio:.3f} times as "
        f"fast (95 % interval {low:.3f} to {high:.3f}){noise}"
    )


def _basis(verdict: Verdict) -> str:
    """What the verdict rests on."""
    if verdict.certified:
        return (
            f"\n\nCertified: finalists and baseline were run again, in turns, {verdict.rounds} "
            "times; the interval is that of the ratio of their times within a round."
        )
    if verdict.rounds:
        return "\n\nNot certified: too many of the finalists' runs were disturbed, or failed."
    return (
        "\n\nNot certified: these are single runs. The best of many runs flatters itself a little; "
        "intervals include by how much separate runs of one point usually differ."
    )


def _unusable(baseline: TrialRecord | None) -> str:
    if baseline is None:
        return "The baseline has not been measured yet."
    time = time_text(baseline)
    took = f"took {time}, but cannot be used" if time else "gives no time to compare with"
    return f"The baseline {took} ({baseline.status.value}: {baseline.outcome.reason})."


def _changes(verdict: Verdict | None, baseline_point: Point) -> str:
    if verdict is None or verdict.winner.point == baseline_point:
        return ""
    best = verdict.winner.point
    names = dict.fromkeys([*baseline_point, *best])
    rows = [
        [name, value_text(baseline_point, name), value_text(best, name)]
        for name in names
        if value_text(baseline_point, name) != value_text(best, name)
    ]
    return "## What to change\n\n" + table(["parameter", "baseline", "best"], rows)


def _fastest(records: Sequence[TrialRecord], context: ReportContext) -> str:
    timed = [r for r in records if r.outcome.batch_time_s is not None]
    timed.sort(key=lambda r: r.outcome.batch_time_s or 0.0)
    if not timed:
        return ""
    rows = [
        [
            _number(r, context),
            r.status.value,
            time_text(r),
            interval_text(r),
            memory_text(r),
            str(r.parameters),
        ]
        for r in timed[:_FASTEST]
    ]
    header = ["trial", "status", "per global batch", "95 % interval", "peak memory", "parameters"]
    return "## The fastest trials, as they were measured\n\n" + table(header, rows)


def _number(record: TrialRecord, context: ReportContext) -> str:
    is_baseline = record.parameters == context.baseline_point
    return f"{record.trial} (baseline)" if is_baseline else str(record.trial)


def _losses(results: Results) -> str:
    """Where the device time went: by status, and by cause where something went wrong."""
    rows, records = [], results.records
    for status, count in count_by_status(records).items():
        spent = spent_s(records, status)
        causes = Counter(r.outcome.reason for r in records if r.status is status)
        cause = "" if status is Status.OK else shorten(causes.most_common(1)[0][0])
        rows.append([status.value, str(count), f"{spent:.0f} s", _MEANINGS[status], cause])
    if not rows:
        return "No trial has finished."
    if results.repeats:
        spent = sum(repeat.record.cost_s for repeat in results.repeats)
        again = "measured points, run again: controls, rechecks, certification"
        rows.append(["(repeats)", str(len(results.repeats)), f"{spent:.0f} s", again, ""])
    return "## Trials by status\n\n" + table(
        ["status", "trials", "time", "meaning", "an example"], rows
    )


_MEANINGS = {
    Status.OK: "ran, within the limit",
    Status.OVER_LIMIT: "ran, with more memory than the limit allows",
    Status.OOM: "ran out of memory",
    Status.FAILED: "crashed, or did other work than the baseline",
    Status.HUNG: "made no progress and was ended",
    Status.INFRASTRUCTURE: "lost with a node or a port; its point is tried again",
    Status.STOPPED: "ended early, since it could not win",
    Status.SKIPPED: "not launched, since it is not expected to fit",
}


def _next(verdict: Verdict | None, records: Sequence[TrialRecord], context: ReportContext) -> str:
    if verdict is None:
        return ""
    return (
        "## What to do next\n\n"
        f"- Train: `{context.study_dir}/best.yaml` holds the whole configuration under "
        "`trainer.config`, and the command under `trainer.command`.\n"
        f"- Search on: {_search_on(records, context)}."
    )


def _search_on(records: Sequence[TrialRecord], context: ReportContext) -> str:
    if not is_tried_out(records, context.legal_count):
        return "the same command with a larger `search.max_trials`"
    skipped = any(not record.was_launched for record in records)
    by_gate = ", or passed over by the memory gate" if skipped else ""
    return f"every legal point was tried{by_gate}; only a wider `space` holds others"


def _trials(records: Sequence[TrialRecord], context: ReportContext) -> str:
    rows = [
        [
            _number(r, context),
            r.status.value,
            time_text(r),
            memory_text(r),
            str(r.parameters),
            shorten(_remark(r)),
        ]
        for r in sorted(records, key=lambda r: r.trial)
    ]
    tried = len({r.parameters for r in records if r.was_launched})
    head = (
        f"## All trials\n\n{tried} of {context.legal_points} legal points were tried."
        f"{_interrupted(records)}"
    )
    header = ["trial", "status", "per global batch", "peak memory", "parameters", "reason"]
    return f"{head}\n\n{table(header, rows)}" if rows else head


def _remark(record: TrialRecord) -> str:
    """Why it came to nothing; of a good measurement, what a person should know besides."""
    reason = record.outcome.reason
    return reason.removeprefix("measured").lstrip("; ") if record.status is Status.OK else reason


def _interrupted(records: Sequence[TrialRecord]) -> str:
    numbers = {record.trial for record in records}
    if len(numbers) > max(numbers, default=-1):
        return ""
    return (
        " Numbers that are missing are trials that were interrupted; their points were tried again."
    )


def _environment(context: ReportContext) -> str:
    if not context.environment:
        return ""
    rows = [[str(name), plain(value)] for name, value in context.environment.items()]
    return "## Environment\n\n" + table(["", ""], rows)
