"""Who launched a kernel: arrows in the trace from the host to the device.

`async_npu` leads from an operator to each of its kernels. It is written at the end of the file,
so a cut file lacks it; `HostToDevice` leads from the runtime's call, which a second thread makes
for the operator when the task queue is on. `Enqueue` and `Dequeue` with one number are the two
ends of that queue (torch_npu 2.13, `_fwk_cann_relation_parser`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.analyze.ascend.values import duration, moment

Id = int | str | None
Place = tuple[Id, Id]  # process and thread
# What starts at a place and moment -> when the host launched it.
Launches = dict[tuple[Place, int], int]

_DIRECT, _RUNTIME = "async_npu", ("HostToDevice", "acl_to_npu")
FLOW_CATEGORIES = frozenset({_DIRECT, *_RUNTIME})


def place_of(event: Mapping[str, Any]) -> Place:
    """Process and thread of an event."""
    return id_of(event.get("pid")), id_of(event.get("tid"))


def id_of(value: object) -> Id:
    """A process, thread or flow; None for what is neither number nor name."""
    return value if isinstance(value, (int, str)) else None


@dataclass
class _Arrows:
    """Arrows of one kind, whichever end comes first in the file."""

    started: dict[Id, tuple[Id, int]] = field(default_factory=dict)
    early: list[tuple[Id, Place, int]] = field(default_factory=list)
    landed: dict[tuple[Place, int], tuple[Id, int]] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any]) -> None:
        at, key = moment(event.get("ts")), id_of(event.get("id"))
        if at is None or key is None:
            return
        place = place_of(event)
        if event.get("ph") == "s":
            self.started[key] = (place[1], at)
        elif key in self.started:
            self.landed[place, at] = self.started[key]
        else:
            self.early.append((key, place, at))

    def finish(self) -> dict[tuple[Place, int], tuple[Id, int]]:
        """Where arrows land -> the thread and the moment where they start."""
        for key, place, at in self.early:
            if key in self.started:
                self.landed.setdefault((place, at), self.started[key])
        return self.landed


class _Queue:
    """The task queue between the thread that calls operators and the one that launches."""

    def __init__(self) -> None:
        self._enqueued: dict[Id, int] = {}
        self._dequeued: dict[Id, list[tuple[int, int, Id]]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        arguments = event.get("args")
        number = id_of(arguments.get("correlation_id")) if isinstance(arguments, dict) else None
        start, length = moment(event.get("ts")), duration(event.get("dur"))
        if number is None or start is None or length is None:
            return
        if event.get("cat") == "enqueue":
            self._enqueued[number] = start
        else:
            thread = id_of(event.get("tid"))
            self._dequeued.setdefault(thread, []).append((start, start + length, number))

    def sort(self) -> None:
        """To be called before `enqueued`."""
        for spans in self._dequeued.values():
            spans.sort(key=lambda span: span[0])

    def enqueued(self, thread: Id, at: int) -> int:
        """When what the thread does then was put into the queue; `at` where nothing was."""
        spans = self._dequeued.get(thread, [])
        i = bisect_right(spans, at, key=lambda span: span[0]) - 1
        if i < 0 or at > spans[i][1]:
            return at
        return self._enqueued.get(spans[i][2], at)


class Flows:
    """All arrows of a trace."""

    def __init__(self) -> None:
        self._direct, self._runtime = _Arrows(), _Arrows()
        self._queue = _Queue()

    def take(self, event: Mapping[str, Any]) -> None:
        """One end of an arrow, of one of `FLOW_CATEGORIES`."""
        arrows = self._direct if event.get("cat") == _DIRECT else self._runtime
        arrows.take(event)

    def take_queue(self, event: Mapping[str, Any]) -> None:
        """One `Enqueue` or `Dequeue`."""
        self._queue.take(event)

    def launches(self) -> Launches:
        """By the operator's own arrow where there is one, else by the runtime's."""
        self._queue.sort()
        found = {
            landed: self._queue.enqueued(thread, at)
            for landed, (thread, at) in self._runtime.finish().items()
        }
        found.update((landed, at) for landed, (_, at) in self._direct.finish().items())
        return found
