"""What a Kineto trace records, in the few shapes that the analysis needs.

Kineto renamed its categories (`Operator` became `cpu_op` and `user_annotation`, `Kernel` became
`kernel`) and threads (text became numbers); `collect` brings all versions to these values. All
times are integer nanoseconds on the trace's own clock. Rows are NamedTuples, for a trace of a
gigabyte has millions of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from autotune.analyze.intervals import Interval


class HostCall(NamedTuple):
    """An operator or a range on a host thread. call_id: `External id`, apart from all others."""

    start: int
    end: int
    name: str
    call_id: int


class TaskKind(StrEnum):
    """What a device does."""

    KERNEL = "kernel"
    COPY = "copy"  # memcpy and memset
    COMMUNICATION = "communication"


class DeviceTask(NamedTuple):
    """A kernel or a copy. correlation: that of the host call that launched it, -1 if unknown."""

    start: int
    end: int
    name: str
    correlation: int
    kind: TaskKind
    stream: str


class Launch(NamedTuple):
    """The host call that put a task on the device."""

    at: int
    thread: str


class Collective(NamedTuple):
    """One communication. thread: the host thread that it occupies, empty on a device."""

    start: int
    end: int
    operation: str
    group: str
    size_bytes: float | None
    thread: str


class MemoryChange(NamedTuple):
    """An allocation (positive) or a release (negative) by torch's allocator.

    allocated, reserved: totals after it, None in old traces; so is the address.
    """

    at: int
    size_bytes: int
    address: int | None
    allocated: int | None
    reserved: int | None
    device: str
    thread: str


@dataclass(frozen=True)
class Recording:
    """All events of a trace that the analysis needs, by time.

    operators, ranges: by host thread, the outer one first. launches: by correlation.
    starts: host operators that start a collective or wait for one.
    unreadable: events without a time. closed: the marks that end every trace are there.
    device_lost: a device was at work, but the file ends before its tasks.
    """

    operators: Mapping[str, Sequence[HostCall]]
    ranges: Mapping[str, Sequence[HostCall]]
    tasks: Sequence[DeviceTask]
    launches: Mapping[int, Launch]
    collectives: Sequence[Collective]
    starts: Sequence[Collective]
    memory: Sequence[MemoryChange]
    unreadable: int = 0
    closed: bool = True
    device_lost: bool = False

    @cached_property
    def span(self) -> Interval | None:
        """From the first to the last recorded moment; None where nothing was recorded."""
        calls = [row for row in (*self.operators.values(), *self.ranges.values()) if row]
        starts = [row[0].start for row in calls] + [task.start for task in self.tasks[:1]]
        ends = [call.end for row in calls for call in row] + [task.end for task in self.tasks]
        return (min(starts), max(ends)) if starts else None

    @property
    def origin(self) -> int:
        """The moment from which a profile of this trace counts its times."""
        return self.span[0] if self.span else 0

    @property
    def is_host_only(self) -> bool:
        """No device was recorded, nor calls to one: the host itself computes."""
        return not (self.tasks or self.launches or self.device_lost)

    @property
    def device(self) -> str:
        """What computes: `cuda` (also AMD's, as torch calls it) or `cpu`."""
        return "cpu" if self.is_host_only else "cuda"
