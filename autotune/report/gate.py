"""What the memory gate was worth: launches that it avoided, and how often it was right."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.outcome import Status
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord

_FIT = (Status.OK, Status.STOPPED)


@dataclass(frozen=True)
class GateSummary:
    """Counts of launches.

    avoided: points that would have been launched but for the gate, each once, and never were.
    checked: refused points that were launched to check the gate, and whose run told whether they
    fit; right: those that broke the limit. median_error: of the peaks that were predicted before
    launches, as a share of the measured ones, None where there are none; predicted: how many.
    """

    avoided: int
    checked: int
    right: int
    predicted: int
    median_error: float | None

    @classmethod
    def of(cls, records: Sequence[TrialRecord]) -> GateSummary:
        """From the trials of a study; what was taken over from an older one plays no part."""
        own = [record for record in records if record.taken_from is None]
        launched = {record.parameters for record in own if record.was_launched}
        skipped = {record.parameters for record in own if not record.was_launched}
        passed_over = {point for record in own if (point := _passed_over(record)) is not None}
        checks = [record for record in own if record.was_checked]
        broke = sum(record.status.violates_memory for record in checks)
        errors = [error for record in own if (error := _error(record)) is not None]
        return cls(
            avoided=len((skipped | passed_over) - launched),
            checked=broke + sum(record.status in _FIT for record in checks),
            right=broke,
            predicted=len(errors),
            median_error=statistics.median(errors) if errors else None,
        )

    @property
    def line(self) -> str:
        """In one line, empty where the gate has refused nothing."""
        if not self.avoided and not self.checked:
            return ""
        words = [f"{_launches(self.avoided)} avoided"] if self.avoided else []
        if self.checked:
            words.append(
                f"{_points(self.checked)} launched to check it, {self.right} of them broke the "
                "limit"
            )
        if self.median_error is not None:
            words.append(f"predicted peaks are off by {self.median_error:.1%} (median)")
        return f"memory gate: {'; '.join(words)}"


def gate_section(records: Sequence[TrialRecord]) -> str:
    """The gate's part of the report, empty where it has neither refused nor predicted."""
    summary = GateSummary.of(records)
    parts = []
    if summary.avoided or summary.checked:
        parts.append(_avoided(summary.avoided))
        parts.append(_checks(summary))
    if summary.median_error is not None:
        parts.append(
            f"Peaks that were predicted before the launch are off by {summary.median_error:.1%} "
            f"(median of {summary.predicted})."
        )
    return "## The memory gate\n\n" + " ".join(parts) if parts else ""


def _avoided(count: int) -> str:
    if not count:
        return "It avoided no launch."
    return (
        f"{_launches(count).capitalize()} avoided: so many points, each counted once, would "
        "have been launched, had they been expected to stay within the limit."
    )


def _checks(summary: GateSummary) -> str:
    if not summary.checked:
        return "No refused point was launched to check the gate."
    return (
        f"To check the gate, {_points(summary.checked)} launched all the same: "
        f"{summary.right} of {summary.checked} broke the limit."
    )


def _launches(count: int) -> str:
    return "1 launch was" if count == 1 else f"{count} launches were"


def _points(count: int) -> str:
    return "1 refused point was" if count == 1 else f"{count} refused points were"


def _passed_over(record: TrialRecord) -> Point | None:
    """The refused point that the record's was launched in place of."""
    return record.gate.passed_over if record.was_launched and record.gate is not None else None


def _error(record: TrialRecord) -> float | None:
    """How far a predicted peak was from that of the whole run, where both are known."""
    outcome, gate = record.outcome, record.gate
    is_whole = outcome.status in _FIT or (
        outcome.status is Status.OVER_LIMIT and outcome.batch_time_s is not None
    )
    peak = outcome.peak_memory_bytes
    if gate is None or gate.predicted_peak_bytes is None or not peak or not is_whole:
        return None
    return abs(gate.predicted_peak_bytes / peak - 1)
