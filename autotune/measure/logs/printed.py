"""What a program printed, as far as it tells of steps and of memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PrintedStep:
    """A step that was printed, however many ranks and lines tell of it.

    step: its number as printed. run: which run of the program it is of, from 0; a log holds
    several where the program was started again. time_s: seconds, the mean over the
    `averaged_over` steps up to this one, of the slowest rank; None where only a rate was
    printed and too little is known of the batch. averaged_over: None while only one line
    tells. loss: the mean over the ranks that print different ones. samples, tokens: of the
    whole batch. skipped: an update of these steps was skipped. profiled: a profiler ran.
    phases_s: seconds by phase (JSON alone).
    """

    step: int
    run: int = 0
    time_s: float | None = None
    averaged_over: int | None = 1
    loss: float | None = None
    grad_norm: float | None = None
    samples: int | None = None
    tokens: int | None = None
    skipped: bool = False
    profiled: bool = False
    phases_s: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None and not 0 < self.time_s < math.inf:
            raise ValueError(f"step {self.step} took {self.time_s!r} s, which is no time")
        if self.averaged_over is not None and self.averaged_over < 1:
            raise ValueError(f"a mean over {self.averaged_over!r} steps is none; give at least 1")


@dataclass(frozen=True)
class PrintedMemory:
    """The most that a rank had held so far, or since the line before, in bytes.

    source: whose log it was in. rank: that the line names, None where it names none. step:
    the last one before it was printed, None where it was not said. alloc_retries: see
    `StepRecord`.
    """

    source: int
    rank: int | None = None
    step: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    peak_device_bytes: int | None = None
    alloc_retries: int | None = None

    @property
    def peak_bytes(self) -> int:
        """The largest of the peaks."""
        peaks = (self.peak_allocated_bytes, self.peak_reserved_bytes, self.peak_device_bytes)
        return max((peak for peak in peaks if peak is not None), default=0)


@dataclass(frozen=True)
class LogReading:
    """All that was read. cut_lines: lines of the format that were not whole, passed over."""

    steps: tuple[PrintedStep, ...] = ()
    memory: tuple[PrintedMemory, ...] = ()
    cut_lines: int = 0

    @property
    def last_run(self) -> tuple[PrintedStep, ...]:
        """The steps of the last run."""
        last = max((step.run for step in self.steps), default=0)
        return tuple(step for step in self.steps if step.run == last)

    @property
    def peak_bytes(self) -> int | None:
        """The largest peak of any rank, None where none was printed."""
        return max((memory.peak_bytes for memory in self.memory), default=None)
