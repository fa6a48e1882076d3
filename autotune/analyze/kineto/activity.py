"""When the device computed, communicated, or did neither.

On cuda a device computes while a kernel runs that does not communicate, or while a copy (memcpy,
memset) runs and no communication: a copy alone keeps the device from idling, but it hides no
communication. Without a device the host computes: while any thread is in an operator that is
no communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.analyze.intervals import Interval, subtract, union
from autotune.analyze.kineto.events import DeviceTask, HostCall, Recording, TaskKind

_COMMUNICATION = "communication"  # one of the names that mark a user's own ranges


@dataclass(frozen=True)
class Activity:
    """Disjoint intervals in order. exposed: communication that computing does not hide."""

    computing: list[Interval]
    communication: list[Interval]
    exposed: list[Interval]
    busy: list[Interval]


def activity_of(recording: Recording) -> Activity:
    """The activity of the device, or of the host where no device was recorded."""
    if recording.is_host_only:
        waits = _host_communication(recording)
        communication = union(span for spans in waits.values() for span in spans)
        computing = _host_computing(recording.operators, waits)
    else:
        communication = union((each.start, each.end) for each in recording.collectives)
        computing = device_computing(recording.tasks, communication)
    return Activity(
        computing=computing,
        communication=communication,
        exposed=subtract(communication, computing),
        busy=union([*computing, *communication]),
    )


def device_computing(tasks: Iterable[DeviceTask], communication: list[Interval]) -> list[Interval]:
    """When any of the tasks computed."""
    spans: Mapping[TaskKind, list[Interval]] = {kind: [] for kind in TaskKind}
    for task in tasks:
        spans[task.kind].append((task.start, task.end))
    copies = subtract(spans[TaskKind.COPY], communication)
    return union([*spans[TaskKind.KERNEL], *copies])


def _host_communication(recording: Recording) -> dict[str, list[Interval]]:
    """By thread: collectives, and what the user's own ranges call communication.

    The ranges hold a thread's waiting as well, in which it may be in an operator that computes
    nothing, such as an autograd function around a collective.
    """
    spans: dict[str, list[Interval]] = {}
    for each in (*recording.collectives, *recording.starts):
        spans.setdefault(each.thread, []).append((each.start, each.end))
    for thread, calls in recording.ranges.items():
        marked = [(call.start, call.end) for call in calls if call.name == _COMMUNICATION]
        spans.setdefault(thread, []).extend(marked)
    return spans


def _host_computing(
    operators: Mapping[str, Sequence[HostCall]], waits: Mapping[str, list[Interval]]
) -> list[Interval]:
    computing: list[Interval] = []
    for thread, calls in operators.items():
        own = union(waits.get(thread, []))
        computing += subtract(((call.start, call.end) for call in calls), own)
    return union(computing)
