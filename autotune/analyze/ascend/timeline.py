"""What happened when, on the device and on the host: the common ground of all files.

`trace_view.json`, the SQLite database and `kernel_details.csv` are each read into a `Timeline`;
step times, phases, gaps and collectives are computed from it without knowing which it was.
All times are integer nanoseconds since the epoch, as exact as the file has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from autotune.analyze.intervals import Interval, subtract, union

# A pipeline stage waits in these for the stage before it.
RECEIVE_PREFIX = "hcom_receive"

# `Task Type` of what msprof counts as computing, in trace_view.json and in the database. What
# else runs in a stream moves data or waits: copies (SDMA, PCIE_DMA), events, notifications.
_COMPUTING = frozenset(
    {"AI_CORE", "AI_VECTOR_CORE", "AIV_SQE", "MIX_AIC", "MIX_AIV", "DSA_SQE", "FFTS_PLUS"}
    | {"AI_CPU", "AICPU", "KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_AICPU"}
    | {"KERNEL_MIX_AIC", "KERNEL_MIX_AIV", "HARDWARE_DSA", "DSA"}
)
_COPIES = frozenset({"MEMCPY_ASYNC", "SDMA_SQE", "PCIE_DMA_SQE", "MEMCPY"})


def is_computing(kind: str) -> bool:
    """Whether msprof counts tasks of this kind as computing."""
    return kind in _COMPUTING


class Task(NamedTuple):
    """One kernel or copy on the device. launch: when the host called it, None where unknown."""

    start: int
    end: int
    name: str
    kind: str
    launch: int | None = None

    @property
    def computes(self) -> bool:
        """Whether msprof counts it as computing."""
        return is_computing(self.kind)

    @property
    def copies(self) -> bool:
        """Whether it moves data between memories."""
        return self.kind in _COPIES


class Call(NamedTuple):
    """One call of a collective on the device. group: the communicator as the file names it."""

    start: int
    end: int
    name: str
    group: str

    @property
    def receives(self) -> bool:
        """Whether it waits for another pipeline stage."""
        return self.name.startswith(RECEIVE_PREFIX)


class HostStep(NamedTuple):
    """`ProfilerStep#<number>` on the host."""

    number: int
    start: int
    end: int


class Window(NamedTuple):
    """The time on the device that belongs to a step; None for all of a profile without steps."""

    step: HostStep | None
    start: int
    end: int

    @property
    def number(self) -> int | None:
        """The step's number."""
        return None if self.step is None else self.step.number


class HostOperator(NamedTuple):
    """All calls of an operator on the host; times in nanoseconds."""

    name: str
    calls: int
    total: int
    longest: int


@dataclass(frozen=True)
class Overlap:
    """Computing and communication of the device, and what is left: disjoint, sorted intervals.

    not_overlapped: communication that no computing hides. free: neither, between the first
    and the last.
    """

    computing: Sequence[Interval]
    communication: Sequence[Interval]
    not_overlapped: Sequence[Interval]
    free: Sequence[Interval]


@dataclass(frozen=True)
class Host:
    """What the host did, in ranges: loading data, backward, optimizer.

    first: the start of its first operator; None where the host was not recorded.
    """

    first: int | None = None
    steps: tuple[HostStep, ...] = ()
    loading: Sequence[Interval] = ()
    backward: Sequence[Interval] = ()
    optimizer: Sequence[Interval] = ()
    operators: tuple[HostOperator, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether there is anything to attribute kernels to."""
        return self.first is not None


@dataclass(frozen=True)
class Timeline:
    """tasks, calls: by start. windows: the steps on the device, one without a number if none.

    other_devices: names of devices that are in the file too and were left out. linked: the
    windows come from the kernels that each step launched, not from the host's clock alone.
    """

    tasks: Sequence[Task]
    calls: Sequence[Call]
    overlap: Overlap
    host: Host
    windows: tuple[Window, ...] = ()
    linked: bool = True
    cut: bool = False
    other_devices: tuple[str, ...] = field(default=())

    @property
    def origin(self) -> int:
        """Where times of the profile are counted from: the start of the first step."""
        starts = [step.start for step in self.host.steps[:1]]
        starts += [] if starts else [task.start for task in self.tasks[:1]]
        starts += [] if starts else [interval[0] for interval in self.overlap.communication[:1]]
        starts += [] if starts else [0 if self.host.first is None else self.host.first]
        return starts[0]

    def lasts_beyond(self, window: Window) -> bool:
        """Whether all of a step was read: of a cut file the last one is there in part."""
        if not self.cut or window.step is None:
            return True
        starts = [found[-1].start for found in (self.tasks, self.calls) if found]
        return max(starts, default=window.start) >= window.end

    @property
    def empty(self) -> bool:
        """Whether the device did nothing at all."""
        return not (self.overlap.computing or self.overlap.communication)


def overlap_of(tasks: Sequence[Task], calls: Sequence[Call]) -> Overlap:
    """What msprof's "Overlap Analysis" says, computed from the kernels themselves."""
    computing = union((task.start, task.end) for task in tasks if task.computes)
    communication = union((call.start, call.end) for call in calls)
    busy = union([*computing, *communication])
    return Overlap(
        computing=computing,
        communication=communication,
        not_overlapped=subtract(communication, computing),
        free=[(left[1], right[0]) for left, right in pairwise(busy)],
    )
