"""How far the measurements can be believed."""

from __future__ import annotations

import time

from autotune.certify.drift import Drift
from autotune.certify.results import Results
from autotune.certify.verdict import Measured, Verdict
from autotune.report.cells import shorten, table


def certification_section(verdict: Verdict | None, results: Results) -> str:
    """Who ran against whom, what was left out, who was rejected and why."""
    parts = []
    if verdict is not None and verdict.finalists:
        parts.append(_contest(verdict, results))
    if results.rejected:
        rows = [
            [str(s.record.trial), f"{s.time_s * 1e3:.1f} ms", shorten(reason, 200)]
            for s, reason in results.rejected
        ]
        parts.append(
            "Faster than the best, and rejected:\n\n" + table(["trial", "time", "reason"], rows)
        )
    parts += [note for note in (_once(results), _unchecked(results)) if note]
    return "## Certification\n\n" + "\n\n".join(parts) if parts else ""


def _once(results: Results) -> str:
    """Points that might still be the fastest, had their only run been in a bad moment."""
    count = len(results.within_reach)
    if not count or not results.settings.enabled:
        return ""
    return (
        f"{count} points within {results.settings.recheck_within:.0%} of the best ran once only: "
        "what a bad moment may have cost one of them is not known. `certify.max_rechecks` bounds "
        "how many are run again."
    )


def _unchecked(results: Results) -> str:
    base = results.baseline_standing
    work = None if base is None else base.record.outcome.work
    if base is None or (work is not None and (work.losses or work.samples is not None)):
        return ""
    return (
        "**Whether the points do the same work was not checked**: the baseline recorded neither "
        "samples nor losses."
    )


def _contest(verdict: Verdict, results: Results) -> str:
    rows = [
        [
            f"{m.record.trial} (baseline)" if m.point == results.baseline else str(m.record.trial),
            f"{m.time.mean_s * 1e3:.1f} ms",
            _ratio(m),
            str(m.runs),
            str(m.disturbed) if m.disturbed else "",
            str(m.point),
        ]
        for m in verdict.finalists
    ]
    header = ["trial", "per global batch", "x baseline", "runs", "disturbed runs", "parameters"]
    spread = results.spread
    return (
        f"{table(header, rows)}\n\nRun in turns. A disturbed run took over 10 % longer than the "
        f"fastest run of its point and does not count. Separate runs of one point differ by "
        f"{spread.relative_sd:.1%} here (standard deviation)."
    )


def _ratio(measured: Measured) -> str:
    if measured.speedup is None:
        return ""
    interval = measured.speedup.ci95
    between = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
    return f"{measured.speedup.ratio:.3f}{between}"


def drift_section(results: Results) -> str:
    """What the baseline's own runs say of the machine; empty where it ran once."""
    drift = results.drift
    if len(drift.controls) < 2:
        return ""
    first = drift.controls[0]
    rows = [
        [
            time.strftime("%H:%M:%S", time.localtime(control.at)),
            f"{control.time_s * 1e3:.1f} ms",
            f"{control.time_s / first.time_s - 1:+.1%}",
            "" if control in drift.steady else "disturbed",
        ]
        for control in drift.controls
    ]
    return (
        f"## The machine meanwhile\n\n{_drift(drift)}\n\n"
        f"{table(['at', 'baseline', 'against the first', ''], rows)}"
    )


def _drift(drift: Drift) -> str:
    largest = drift.largest
    if largest is None or not drift.is_notable:
        disturbed = len(drift.controls) - len(drift.steady)
        others = "Its runs differ" if not disturbed else "the others differ"
        left_out = (
            f" {disturbed} of {len(drift.controls)} runs were disturbed;" if disturbed else ""
        )
        return (
            f"The baseline was run again during the sweep.{left_out} {others} by no more than "
            "separate runs do."
        )
    change = largest.time_s / drift.steady[0].time_s - 1
    way = "slower" if change > 0 else "faster"
    return (
        f"**The machine drifted**: the baseline was {abs(change):.1%} {way} at "
        f"{time.strftime('%H:%M', time.localtime(largest.at))} than at the start. Trials are "
        "compared with this taken out, and finalists were run in turns."
    )
