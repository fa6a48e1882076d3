"""What a profile of one rank says, whatever profiler wrote it.

Readers (`ascend/`, `kineto/`) fill these values in; analyses, tables and texts know nothing
else. What a file does not hold is left out here and named in `Profile.missing`, never made up.

All times are microseconds (`_us`), as both torch_npu's and Kineto's files have them, counted
from an origin of the profile's own: seconds since the epoch do not fit a float to the
nanosecond. Sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class ProfilerKind(StrEnum):
    """Which profiler wrote the files."""

    TORCH_NPU = "torch_npu"
    KINETO = "kineto"  # torch.profiler on cpu or cuda


@dataclass(frozen=True)
class Missing:
    """Something that the profile does not hold: what, why, and how to have it next time."""

    what: str
    why: str


@dataclass(frozen=True)
class StepTime:
    """One step on one rank, in the terms of torch_npu's `step_trace_time.csv`.

    step: the profiler's number, None where the files have none. computing_us: time in which
    a device computes. communication_us = overlapped_us + not_overlapped_us. free_us: the
    device does neither. stage_us = computing_us + not_overlapped_us + free_us, the device's
    span less bubbles. bubble_us: waiting to receive from another pipeline stage.
    preparing_us: from the host's start of the step to the first device task. host_us: the
    step on the host, None where the host was not recorded; where the host runs ahead of the
    device, until the device has done the step, from when it had done the one before.
    phases_us: the six phases of `autotune.measure.records.PHASES`, adding up to the step;
    None where the profile does not tell them apart.
    """

    step: int | None
    computing_us: float
    not_overlapped_us: float
    overlapped_us: float
    communication_us: float
    free_us: float
    stage_us: float
    bubble_us: float = 0.0
    preparing_us: float = 0.0
    host_us: float | None = None
    phases_us: Mapping[str, float] | None = None

    @property
    def total_us(self) -> float:
        """The step as long as it took: on the host where that is known, else on the device."""
        return self.host_us if self.host_us is not None else self.preparing_us + self.stage_us

    @property
    def not_overlapped_without_bubble_us(self) -> float:
        """`Communication(Not Overlapped and Exclude Receive)`."""
        return max(self.not_overlapped_us - self.bubble_us, 0.0)


@dataclass(frozen=True)
class OperatorTime:
    """All calls of one operator or kernel. where: `host`, `AI_CORE`, `cuda`, ... as recorded.

    self_us: without what it called; total_us with it. host and device time are separate rows
    where both are known.
    """

    name: str
    where: str
    count: int
    total_us: float
    self_us: float | None = None
    longest_us: float | None = None


@dataclass(frozen=True)
class CollectiveTime:
    """One collective, or all calls of one kind in one group (count > 1).

    operation: `allReduce`, `nccl:all_gather`, ... group: the communicator as named.
    elapsed_us: from start to end. transit_us: data moves. wait_us: until the others are
    there, synchronization_us within it the first time; idle_us: neither. size_bytes: moved.
    overlapped_us: hidden behind compute. None where the profile does not say.
    """

    operation: str
    group: str
    count: int
    elapsed_us: float
    step: int | None = None
    transit_us: float | None = None
    wait_us: float | None = None
    synchronization_us: float | None = None
    idle_us: float | None = None
    size_bytes: float | None = None
    overlapped_us: float | None = None

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        """Gigabytes (1e9) a second while data move, or over the whole where only that is known."""
        seconds_us = self.transit_us if self.transit_us else self.elapsed_us
        if self.size_bytes is None or not seconds_us:
            return None
        return self.size_bytes / seconds_us / 1e3


@dataclass(frozen=True)
class LinkTime:
    """Traffic between two ranks. transport: `HCCS`, `PCIE`, `RDMA`, `SDMA`, ... as recorded."""

    source: int
    target: int
    transport: str
    size_bytes: float
    transit_us: float
    group: str = ""

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        """Gigabytes (1e9) a second."""
        return self.size_bytes / self.transit_us / 1e3 if self.transit_us > 0 else None


@dataclass(frozen=True)
class MemoryPoint:
    """A device's memory at one moment. component: `PTA` (torch), `GE`, `APP` (the process)..."""

    time_us: float
    component: str
    allocated_bytes: float
    reserved_bytes: float | None = None


@dataclass(frozen=True)
class MemoryHolder:
    """An allocation that was live at the peak. by: the operator that made it."""

    by: str
    size_bytes: float
    allocated_at_us: float | None = None
    released_at_us: float | None = None


@dataclass(frozen=True)
class MemoryUse:
    """points: over time. peaks: the largest figure of each component, by its name.

    holders: what was live at the peak of the framework's allocator, largest first.
    """

    points: tuple[MemoryPoint, ...]
    peaks_bytes: Mapping[str, float]
    peak_at_us: float | None = None
    holders: tuple[MemoryHolder, ...] = ()


@dataclass(frozen=True)
class Gap:
    """A time in which the device did nothing, or waited for another pipeline stage.

    cause: `receive` (a pipeline bubble), `host` (nothing was queued), `communication` (only
    communication ran), `copy` (mostly copies between memories ran). before, after: what ran
    on the device around it.
    """

    start_us: float
    duration_us: float
    cause: str
    before: str = ""
    after: str = ""
    step: int | None = None


@dataclass(frozen=True)
class Profile:
    """Everything that was read of one rank.

    rank: None where the files do not say. device: `npu`, `cuda` or `cpu`. version: of the
    profiler, empty where unknown. complete: the profiler finished writing. cut: files that
    end in the middle; what came before the cut was read.
    """

    source: Path
    kind: ProfilerKind
    rank: int | None
    device: str
    version: str = ""
    complete: bool = True
    cut: tuple[str, ...] = ()
    steps: tuple[StepTime, ...] = ()
    operators: tuple[OperatorTime, ...] = ()
    collectives: tuple[CollectiveTime, ...] = ()
    links: tuple[LinkTime, ...] = ()
    memory: MemoryUse | None = None
    gaps: tuple[Gap, ...] = ()
    missing: tuple[Missing, ...] = field(default=())

    @property
    def name(self) -> str:
        """How the profile is called in texts: its rank, else its file."""
        return self.source.name if self.rank is None else f"rank {self.rank}"
