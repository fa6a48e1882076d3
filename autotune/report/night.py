"""How the study went while nobody looked: hours, what was lost and repeated, what was said."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.certify.results import Results
from autotune.measure.moments import is_moment, utc_text
from autotune.report.cells import count_text, duration_text, table
from autotune.study.events import Event
from autotune.study.trial_record import TrialRecord

_MOST_EVENTS = 40


def night_section(results: Results, events: Sequence[Event]) -> str:
    """The report's part, empty where nothing ran and nothing was said."""
    runs = [*results.records, *(repeat.record for repeat in results.repeats)]
    launched = [run for run in runs if run.was_launched and run.taken_from is None]
    parts = [_hours(launched), _lost(launched), _events(events)]
    text = "\n\n".join(part for part in parts if part)
    return f"## How it went\n\n{text}" if text else ""


def _hours(runs: Sequence[TrialRecord]) -> str:
    if not runs:
        return ""
    begins = [run.started_at for run in runs if is_moment(run.started_at)]
    ends = [run.ended_at for run in runs if is_moment(run.ended_at)]
    when = (
        f" from {utc_text(min(begins))} to {utc_text(max(ends))} (UTC)" if begins and ends else ""
    )
    spent = sum(run.cost_s for run in runs)
    return f"{count_text(len(runs), 'run')}{when}, with {duration_text(spent)} on the devices."


def _lost(runs: Sequence[TrialRecord]) -> str:
    """Runs that machines are to blame for, and what became of their points."""
    lost = [run for run in runs if run.status.may_retry]
    if not lost:
        return ""
    settled = {run.parameters for run in runs if not run.status.may_retry}
    repeated = sum(run.parameters in settled for run in lost)
    spent = sum(run.cost_s for run in lost)
    return (
        f"{len(lost)} of them {'was' if len(lost) == 1 else 'were'} lost with a node, a device or "
        f"a port, after {duration_text(spent)} in all; of {repeated or 'none'} the point was "
        "measured afterwards."
    )


def _events(events: Sequence[Event]) -> str:
    if not events:
        return ""
    shown = events[-_MOST_EVENTS:]
    rows = [[utc_text(event.at), event.text] for event in shown]
    more = len(events) - len(shown)
    head = f"The last {len(shown)} of {len(events)} messages:\n\n" if more else ""
    return head + table(["UTC", "what was said"], rows)
