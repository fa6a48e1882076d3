"""One line of `trials.jsonl`: a finished trial."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from autotune.json_object import json_object
from autotune.measure.outcome import Failure, Outcome, Status, Work
from autotune.measure.records import PHASES
from autotune.measure.timing import BatchTime
from autotune.space.point import Point

_LONGEST_S = 1e7
_REQUIRED = ("trial", "parameters", "status", "reason")


@dataclass(frozen=True)
class GateNote:
    """What the memory gate expected of a point before its launch.

    fits: probability of staying within the limit. predicted_peak_bytes: None, as fits, where no
    prediction was calibrated. checked: the gate refused the point, and it was launched all the
    same. passed_over: the point in whose place it was launched, which the gate refused; None for
    none, and where a line of an older version says only whether there was one.
    """

    fits: float | None
    predicted_peak_bytes: int | None
    checked: bool = False
    passed_over: Point | None = None

    def to_data(self) -> dict[str, Any]:
        """As plain values."""
        over = self.passed_over
        return {
            "fits": self.fits,
            "predicted_peak_bytes": self.predicted_peak_bytes,
            "checked": self.checked,
            "passed_over": None if over is None else dict(over),
        }

    @classmethod
    def from_data(cls, entry: Mapping[str, Any]) -> GateNote:
        """From what `to_data` gave. Raises ValueError, TypeError or KeyError."""
        fits = _finite(entry["fits"])
        if fits is not None and not 0 <= fits <= 1:
            raise ValueError(f"gate.fits is no probability: {fits!r}")
        checked = entry["checked"]
        if not isinstance(checked, bool):
            raise ValueError(f"gate.checked is neither true nor false: {checked!r}")
        peak = _count(entry["predicted_peak_bytes"])
        return cls(fits, peak, checked, _passed_over(entry["passed_over"]))


@dataclass(frozen=True)
class TrialRecord:
    """A finished trial, or one that the memory gate kept from being launched.

    cost_s: seconds that its devices were taken. started_at, ended_at: seconds since the
    epoch. attempt: 1 for the first launch of the point. fingerprint: of the environment.
    taken_from: study and trial that an older result was carried over from. gate: what the
    memory gate expected, None where it expected nothing.
    """

    trial: int
    parameters: Point
    outcome: Outcome
    cost_s: float
    started_at: float
    ended_at: float
    attempt: int
    fingerprint: str
    taken_from: Mapping[str, Any] | None = field(default=None)
    gate: GateNote | None = None

    @property
    def number(self) -> int:
        """The trial's number."""
        return self.trial

    @property
    def status(self) -> Status:
        """The status of the outcome."""
        return self.outcome.status

    @property
    def batch_time(self) -> BatchTime | None:
        """The measured time where there is one."""
        if self.outcome.batch_time_s is None:
            return None
        return BatchTime(
            self.outcome.batch_time_s, self.outcome.batch_time_ci95_s, self.outcome.steps
        )

    @property
    def counts(self) -> bool:
        """Whether it counts towards `search.max_trials`: run here, to an end of its own."""
        return self.taken_from is None and self.was_launched and not self.status.may_retry

    @property
    def was_launched(self) -> bool:
        """False where the memory gate refused the point."""
        return self.status is not Status.SKIPPED

    @property
    def was_checked(self) -> bool:
        """Whether the memory gate refused the point, and it was launched to check the gate."""
        return self.was_launched and self.gate is not None and self.gate.checked

    def to_data(self) -> dict[str, Any]:
        """As plain values, by the names of the contract."""
        entry: dict[str, Any] = {
            "trial": self.trial,
            "parameters": dict(self.parameters),
            **outcome_data(self.outcome),
            "cost_s": self.cost_s,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "attempt": self.attempt,
            "fingerprint": self.fingerprint,
        }
        if self.taken_from is not None:
            entry["taken_from"] = dict(self.taken_from)
        if self.gate is not None:
            entry["gate"] = self.gate.to_data()
        return entry

    def to_line(self) -> str:
        """The JSON text, without a line end."""
        return json.dumps(self.to_data(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> TrialRecord:
        """Reads one line. Raises ValueError when it is no finished trial."""
        entry = json_object(line)
        if any(key not in entry for key in _REQUIRED):
            raise ValueError(f"no trial record: {line[:80]!r}")
        return cls.from_data(entry)

    @classmethod
    def from_data(cls, entry: Mapping[str, Any]) -> TrialRecord:
        """From what `to_data` gave. Raises ValueError, TypeError, KeyError or IndexError."""
        gate = entry.get("gate")
        return cls(
            trial=_index(entry["trial"]),
            parameters=Point(entry["parameters"]),
            outcome=outcome_from(entry),
            cost_s=_at_least_0(entry.get("cost_s")) or 0.0,
            started_at=_finite(entry.get("started_at")) or 0.0,
            ended_at=_finite(entry.get("ended_at")) or 0.0,
            attempt=_index(entry.get("attempt") or 1),
            fingerprint=str(entry.get("fingerprint") or ""),
            taken_from=_mapping(entry.get("taken_from")),
            gate=None if gate is None else GateNote.from_data(gate),
        )


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain values, by the names of the contract."""
    work = outcome.work
    return {
        "status": outcome.status.value,
        "reason": outcome.reason,
        "batch_time_s": outcome.batch_time_s,
        "batch_time_ci95_s": outcome.batch_time_ci95_s,
        "steps": outcome.steps,
        "warmup_steps": outcome.warmup_steps,
        "slow_steps": outcome.slow_steps,
        "within_error_s": outcome.within_error_s,
        "peak_memory_bytes": outcome.peak_memory_bytes,
        "peak_rank": outcome.peak_rank,
        "peak_device_bytes": outcome.peak_device_bytes,
        "alloc_retries": outcome.alloc_retries,
        "breakdown_s": None if outcome.breakdown_s is None else dict(outcome.breakdown_s),
        "work": None
        if work is None
        else {"samples": work.samples, "tokens": work.tokens, "losses": list(work.losses)},
        "failure": None if outcome.failure is None else asdict(outcome.failure),
    }


def outcome_from(entry: Mapping[str, Any]) -> Outcome:
    """From what `outcome_data` gave, or an older version of it. Raises ValueError."""
    interval, work = entry.get("batch_time_ci95_s"), entry.get("work")
    return Outcome(
        status=Status(entry["status"]),
        reason=str(entry["reason"]),
        batch_time_s=_positive(entry.get("batch_time_s")),
        batch_time_ci95_s=_interval(interval),
        steps=_index(entry.get("steps") or 0),
        warmup_steps=_index(entry.get("warmup_steps") or 0),
        slow_steps=_index(entry.get("slow_steps") or 0),
        within_error_s=_at_least_0(entry.get("within_error_s")),
        peak_memory_bytes=_count(entry.get("peak_memory_bytes")),
        peak_rank=_count(entry.get("peak_rank")),
        peak_device_bytes=_count(entry.get("peak_device_bytes")),
        alloc_retries=_index(entry.get("alloc_retries") or 0),
        breakdown_s=_breakdown(entry.get("breakdown_s")),
        work=None
        if work is None
        else Work(
            _count(work.get("samples")),
            _count(work.get("tokens")),
            tuple(_finite(loss) for loss in work.get("losses") or ()),
        ),
        failure=_failure(entry.get("failure")),
    )


def _failure(value: object) -> Failure | None:
    if not isinstance(value, Mapping):
        return None
    kind, policy, advice, where = (
        str(value.get(name) or "") for name in ("kind", "policy", "advice", "where")
    )
    return Failure(kind, policy, advice, where, _count(value.get("rank")))


def _passed_over(value: object) -> Point | None:
    if value is None or isinstance(value, bool):
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"gate.passed_over is no point: {value!r}")
    return Point(value)


def _count(value: object) -> int | None:
    return None if value is None else _index(value)


def _index(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number from 0 on")
    return value


def _at_least_0(value: object) -> float | None:
    number = _finite(value)
    if number is not None and number < 0:
        raise ValueError(f"{value!r} is less than 0")
    return number


def _interval(value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"batch_time_ci95_s is no pair of times: {value!r}")
    low, high = _finite(value[0]), _finite(value[1])
    if low is None or high is None or low > high:
        raise ValueError(f"batch_time_ci95_s is no interval: {value!r}")
    return low, high


def _mapping(value: object) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"taken_from is no mapping: {value!r}")
    return value


def _finite(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)


def _breakdown(value: object) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"breakdown_s is no mapping: {value!r}")
    if set(value) != set(PHASES):
        raise ValueError(f"breakdown_s has other phases than {', '.join(PHASES)}: {value!r}")
    return {phase: _finite(value[phase]) or 0.0 for phase in PHASES}


def _positive(value: object) -> float | None:
    """A time from a file that a person may have edited: never zero, negative or infinite."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"batch_time_s is no number: {value!r}")
    if not 0 < value < _LONGEST_S:
        raise ValueError(f"batch_time_s must be more than 0 and less than 1e7, got {value!r}")
    return float(value)
