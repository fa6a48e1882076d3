"""What a trial came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The status of a finished trial, as in `trials.jsonl`."""

    OK = "ok"
    OVER_LIMIT = "over_limit"
    OOM = "oom"
    FAILED = "failed"
    HUNG = "hung"
    INFRASTRUCTURE = "infrastructure"
    STOPPED = "stopped"
    SKIPPED = "skipped"

    @property
    def violates_memory(self) -> bool:
        """The point cannot be used, since it needs more memory than there is."""
        return self in (Status.OVER_LIMIT, Status.OOM, Status.SKIPPED)

    @property
    def is_usable(self) -> bool:
        """The point ran to its end within the limit."""
        return self is Status.OK

    @property
    def may_retry(self) -> bool:
        """The point is not to blame, so it may be launched again."""
        return self is Status.INFRASTRUCTURE


@dataclass(frozen=True)
class Work:
    """The work of one pass over the data window, which every point must do in full.

    losses: mean loss of one stretch of steps after the other, from the first step on, which
    the same work reproduces (`autotune.measure.work`); None where it is not known.
    """

    samples: int | None
    tokens: int | None
    losses: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a trial came to nothing, by kind, and what follows (`autotune.measure.failures`).

    advice: what a person does next. where: the file of the trial's folder that has the words.
    rank: where it began, None where that is not known.
    """

    kind: str
    policy: str
    advice: str
    where: str
    rank: int | None = None

    @property
    def is_of_device(self) -> bool:
        """Whether the device, or the machine, is to blame."""
        return self.policy == "suspect_device"

    @property
    def stops_sweep(self) -> bool:
        """No trial can succeed before a person mends it."""
        return self.policy == "stop_sweep"


@dataclass(frozen=True)
class Outcome:
    """A measurement where `status` is ok, over_limit or stopped, else a failure with its reason.

    batch_time_s: mean seconds of one global batch, with its 95 % interval, None where the run
    was too short for one. steps: scored; warmup_steps: that were found to be warm-up beyond
    the planned ones; slow_steps: that something disturbed, left out. within_error_s: standard
    error within the run. peak_memory_bytes, peak_rank: the largest peak of any rank, of its
    allocator or its device, and that rank; peak_device_bytes: the device's alone, where it is
    known. alloc_retries: how often a rank's allocator found no memory and tried again.
    breakdown_s: seconds by phase, adding up to batch_time_s. work: None where unknown. failure:
    of what came to nothing, where its kind is known.
    """

    status: Status
    reason: str
    batch_time_s: float | None = None
    batch_time_ci95_s: tuple[float, float] | None = None
    steps: int = 0
    warmup_steps: int = 0
    slow_steps: int = 0
    within_error_s: float | None = None
    peak_memory_bytes: int | None = None
    peak_rank: int | None = None
    peak_device_bytes: int | None = None
    alloc_retries: int = 0
    breakdown_s: Mapping[str, float] | None = None
    work: Work | None = None
    failure: Failure | None = None
