"""How far the measurements can be believed."""

from __future__ import annotations

from autotune.certify.drift import SLOW_FROM, Drift
from autotune.certify.results import Results
from autotune.certify.standing import disturbed_from
from autotune.certify.verdict import Measured, Verdict, verdict_of
from autotune.measure.moments import local_text
from autotune.report.cells import count_text, shorten, table


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
        f"{count_text(count, 'point')} within {results.settings.recheck_within:.0%} of the best "
        "ran once only: what a bad moment may have cost is not known. `certify.max_rechecks` "
        "bounds how many are run again."
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
        f"{table(header, rows)}\n\nRun in turns, and compared within a round: what slows all "
        "runs of a round alike is taken out. A disturbed run took over "
        f"{disturbed_from(spread):.0%} longer than the fastest run of its point even so, and does "
        f"not count. Separate runs of one point differ by {spread.relative_sd:.1%} here (standard "
        "deviation)."
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
            local_text(control.at),
            f"{control.time_s * 1e3:.1f} ms",
            f"{control.time_s / first.time_s - 1:+.1%}",
            "" if control in drift.steady else "slow",
        ]
        for control in drift.controls
    ]
    return (
        f"## The machine meanwhile\n\n{_drift(drift)}{_beside_contest(results)}\n\n"
        f"{table(['at', 'baseline', 'against the first', ''], rows)}"
    )


def _drift(drift: Drift) -> str:
    largest, slow = drift.largest, _slow(drift)
    if largest is None or not drift.is_notable:
        alike = "differ by no more than separate runs do."
        if not slow:
            return f"The baseline was run again during the sweep. Its runs {alike}"
        others = f" The others {alike}" if len(drift.steady) > 1 else ""
        return f"The baseline was run again during the sweep. {slow}{others}"
    change = largest.time_s / drift.steady[0].time_s - 1
    way = "slower" if change > 0 else "faster"
    return (
        f"**The machine drifted**: the baseline was {abs(change):.1%} {way} at "
        f"{local_text(largest.at, '%H:%M')} than at the start. Trials are "
        f"compared with this taken out, and finalists were run in turns.{' ' if slow else ''}{slow}"
    )


def _slow(drift: Drift) -> str:
    """What is told of the runs that are far slower than the fastest, empty without any."""
    slow = [control for control in drift.controls if control not in drift.steady]
    if not slow:
        return ""
    fastest = min(control.time_s for control in drift.controls)
    least, most = (end(c.time_s for c in slow) / fastest - 1 for end in (min, max))
    by = f"{least:.0%}" if f"{least:.0%}" == f"{most:.0%}" else f"{least:.0%} to {most:.0%}"
    first, last = (drift.controls.index(slow[end]) for end in (0, -1))
    together = len(slow) > 1 and last - first == len(slow) - 1
    when = f", from {local_text(slow[0].at)} to {local_text(slow[-1].at)}" if together else ""
    are = "was" if len(slow) == 1 else "were"
    return (
        f"{len(slow)} of {len(drift.controls)} runs {are} over {SLOW_FROM:.0%} slower than the "
        f"fastest, by {by}{when}: something slowed them, or the whole machine for a while. Trials "
        "of that time may look slower than they are, which is not taken out."
    )


def _beside_contest(results: Results) -> str:
    """How slow runs here and runs that count under Certification go together."""
    verdict, drift = verdict_of(results), results.drift
    is_slow = len(drift.steady) < len(drift.controls)
    if verdict is None or not verdict.finalists or not is_slow:
        return ""
    return (
        " The comparison under Certification does not suffer from a slow machine: it rests on "
        "ratios of runs of the same round, so that runs which are slow here may count there."
    )
