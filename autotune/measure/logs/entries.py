"""What one line of a log says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.measure.logs.rates import Rate


@dataclass(frozen=True)
class StepEntry:
    """What a line says of a step.

    kind: which of a format's lines it is; several may tell of one step. label: the rank that
    the line begins with, as it is written there. is_mean: the time is the mean over the steps
    since the line before. skipped: an update since then was skipped; skipped_so_far: updates
    that were skipped since the start.
    """

    step: int
    kind: int = 0
    label: str | None = None
    time_s: float | None = None
    rate: Rate | None = None
    is_mean: bool = True
    loss: float | None = None
    grad_norm: float | None = None
    samples: int | None = None
    tokens: int | None = None
    skipped: bool = False
    skipped_so_far: int | None = None
    profiled: bool = False
    phases_s: Mapping[str, float] | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it says how long the step took, or how fast it was."""
        return self.time_s is not None or self.rate is not None


@dataclass(frozen=True)
class MemoryEntry:
    """The most memory that a rank had held when the line was printed, bytes.

    alloc_retries: how often its allocator had had to free its pool and try again.
    """

    step: int | None = None
    rank: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    peak_device_bytes: int | None = None
    alloc_retries: int | None = None


@dataclass(frozen=True)
class SkipEntry:
    """The update of the step that is printed next was skipped."""


@dataclass(frozen=True)
class CutEntry:
    """A line of the format that does not hold what it should: cut off, or run into another."""


Entry = StepEntry | MemoryEntry | SkipEntry | CutEntry
