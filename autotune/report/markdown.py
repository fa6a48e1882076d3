"""The report for people, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.config.quantities import format_bytes
from autotune.export import gain
from autotune.measure.outcome import Status
from autotune.measure.records import PHASES
from autotune.space.point import Point, plain
from autotune.study.best import best_record, count_by_status, record_of, spent_s
from autotune.study.trial_record import TrialRecord

_FASTEST = 10


@dataclass(frozen=True)
class ReportContext:
    """What a report says besides the results."""

    study: str
    model: str
    baseline_point: Point
    memory_limit_bytes: int
    device_memory_bytes: int | None
    legal_points: int
    steps: str
    study_dir: str
    environment: Mapping[str, Any]


def report_markdown(records: Sequence[TrialRecord], context: ReportContext) -> str:
    """The whole report."""
    best = best_record(records)
    baseline = record_of(records, context.baseline_point)
    sections = [
        f"# {context.study}: {context.model}",
        _verdict(best, baseline, context),
        _changes(best, context.baseline_point),
        _breakdown(best, baseline),
        _fastest(records, context),
        _losses(records),
        _next(best, context),
        _trials(records, context),
        _environment(context),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _verdict(best: TrialRecord | None, baseline: TrialRecord | None, context: ReportContext) -> str:
    if best is None:
        return (
            "**No feasible configuration was found.** The limit on peak memory is "
            f"{format_bytes(context.memory_limit_bytes)} a device; what was tried is below."
        )
    found = gain(best, baseline)
    head = f"The best of the trials is trial {best.trial}: **{_time(best)}** per global batch"
    device = context.device_memory_bytes
    of_device = "" if device is None else f" on a device of {format_bytes(device)}"
    memory = (
        f"peak memory {_memory(best)} of {format_bytes(context.memory_limit_bytes)} allowed"
        f"{of_device}"
    )
    if found["speedup"] is None:
        return f"{head}, {memory}. {_unusable(baseline)}"
    if baseline is not None and baseline.trial == best.trial:
        return f"**Keep your baseline**: nothing that was tried is faster. {head}, {memory}."
    interval = found["ci95"]
    between = "" if interval is None else f" (95 % interval {interval[0]:.2f} to {interval[1]:.2f})"
    verdict = (
        f"{head}, **{found['speedup']:.2f} times as fast as the baseline**{between}, {memory}."
    )
    if interval is None:
        verdict += " Without an interval it may be noise: **keep your baseline**."
    elif found["keep_baseline"]:
        verdict += " The difference is within the noise: **keep your baseline**."
    return (
        f"{verdict}\n\nEach point was measured in one run, of {context.steps}. Intervals cover the "
        "spread within that run, not a machine that gets slower or faster over the night, and "
        "the best of many runs flatters itself a little: measure the winner and the baseline "
        "again before you rely on a small difference."
    )


def _unusable(baseline: TrialRecord | None) -> str:
    if baseline is None:
        return "The baseline has not been measured yet."
    time = _time(baseline)
    took = f"took {time}, but cannot be used" if time else "gives no time to compare with"
    return f"The baseline {took} ({baseline.status.value}: {baseline.outcome.reason})."


def _changes(best: TrialRecord | None, baseline_point: Point) -> str:
    if best is None or best.parameters == baseline_point:
        return ""
    names = dict.fromkeys([*baseline_point, *best.parameters])
    rows = [
        [name, _value(baseline_point, name), _value(best.parameters, name)]
        for name in names
        if _value(baseline_point, name) != _value(best.parameters, name)
    ]
    return "## What to change\n\n" + _table(["parameter", "baseline", "best"], rows)


def _breakdown(best: TrialRecord | None, baseline: TrialRecord | None) -> str:
    columns = [
        (name, record)
        for name, record in (("baseline", baseline), ("best", best))
        if record is not None and record.outcome.breakdown_s is not None
    ]
    if not columns:
        return ""
    rows = []
    for phase in PHASES:
        row = [phase.replace("_", " ")]
        for _, record in columns:
            assert record.outcome.breakdown_s is not None
            seconds, total = record.outcome.breakdown_s[phase], record.outcome.batch_time_s or 1.0
            row.append(f"{seconds * 1e3:.1f} ms ({seconds / total:.0%})")
        rows.append(row)
    rows.append(["**per global batch**", *(f"**{_time(record)}**" for _, record in columns)])
    return (
        "## Where the time goes\n\n"
        + _table(["phase", *(name for name, _ in columns)], rows)
        + "\n\nCommunication is the part that compute does not hide, waiting for slower ranks "
        "included; scheduling is the time in which the device waits for the host."
    )


def _fastest(records: Sequence[TrialRecord], context: ReportContext) -> str:
    timed = [r for r in records if r.status in (Status.OK, Status.OVER_LIMIT)]
    timed.sort(key=lambda r: r.outcome.batch_time_s or 0.0)
    if not timed:
        return ""
    rows = [
        [_number(r, context), r.status.value, _time(r), _interval(r), _memory(r), str(r.parameters)]
        for r in timed[:_FASTEST]
    ]
    header = ["trial", "status", "per global batch", "95 % interval", "peak memory", "parameters"]
    return f"## The fastest trials\n\n{_table(header, rows)}{_ties(records)}"


def _ties(records: Sequence[TrialRecord]) -> str:
    """Names the usable trials whose interval meets the best's."""
    best = best_record(records)
    if best is None or best.outcome.batch_time_ci95_s is None:
        return ""
    high = best.outcome.batch_time_ci95_s[1]
    tied = [
        str(r.trial)
        for r in records
        if r.trial != best.trial
        and r.status.is_usable
        and r.outcome.batch_time_ci95_s is not None
        and r.outcome.batch_time_ci95_s[0] <= high
    ]
    if not tied:
        return ""
    return (
        f"\n\nTrial {best.trial} cannot be told from trial {', '.join(tied)} by these runs: their "
        "intervals meet."
    )


def _number(record: TrialRecord, context: ReportContext) -> str:
    is_baseline = record.parameters == context.baseline_point
    return f"{record.trial} (baseline)" if is_baseline else str(record.trial)


def _losses(records: Sequence[TrialRecord]) -> str:
    """Where the device time went: by status, and by cause where something went wrong."""
    rows = []
    for status, count in count_by_status(records).items():
        spent = spent_s(records, status)
        causes = Counter(r.outcome.reason for r in records if r.status is status)
        cause = "" if status is Status.OK else _shorten(causes.most_common(1)[0][0])
        rows.append([status.value, str(count), f"{spent:.0f} s", _MEANINGS[status], cause])
    if not rows:
        return "No trial has finished."
    return "## Trials by status\n\n" + _table(
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
    Status.SKIPPED: "not launched, since it would have run out of memory",
}


def _next(best: TrialRecord | None, context: ReportContext) -> str:
    if best is None:
        return ""
    return (
        "## What to do next\n\n"
        f"- Train: `{context.study_dir}/best.yaml` holds the whole configuration under "
        "`trainer.config`, and the command under `trainer.command`.\n"
        "- Search on: the same command with a larger `search.max_trials`."
    )


def _trials(records: Sequence[TrialRecord], context: ReportContext) -> str:
    rows = [
        [
            _number(r, context),
            r.status.value,
            _time(r),
            _memory(r),
            str(r.parameters),
            "" if r.status is Status.OK else _shorten(r.outcome.reason),
        ]
        for r in sorted(records, key=lambda r: r.trial)
    ]
    tried = len({r.parameters for r in records})
    head = (
        f"## All trials\n\n{tried} of {context.legal_points} legal points were tried. Numbers that "
        "are missing are trials that were interrupted; their points were tried again."
    )
    header = ["trial", "status", "per global batch", "peak memory", "parameters", "reason"]
    return f"{head}\n\n{_table(header, rows)}" if rows else head


def _environment(context: ReportContext) -> str:
    if not context.environment:
        return ""
    rows = [[str(name), plain(value)] for name, value in context.environment.items()]
    return "## Environment\n\n" + _table(["", ""], rows)


def _time(record: TrialRecord) -> str:
    time = record.outcome.batch_time_s
    return "" if time is None else f"{time * 1e3:.1f} ms"


def _interval(record: TrialRecord) -> str:
    interval = record.outcome.batch_time_ci95_s
    return "" if interval is None else f"{interval[0] * 1e3:.1f} to {interval[1] * 1e3:.1f} ms"


def _memory(record: TrialRecord) -> str:
    peak = record.outcome.peak_memory_bytes
    return "" if peak is None else format_bytes(peak)


def _value(point: Point, name: str) -> str:
    return plain(point[name]) if name in point else "(inactive)"


def _shorten(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(escaped)} |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])
