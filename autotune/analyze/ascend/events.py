"""Takes what is needed from the events of `trace_view.json`, one by one: numbers and names.

What the events look like (torch_npu 2.1 to 2.13, levels 0 to 2): category `cpu_op` for the
operators on the host; `Task Type` among the arguments of what ran in a stream of the device;
flows from one to the other; metadata that names processes and threads, anywhere in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from autotune.analyze.ascend.flows import FLOW_CATEGORIES, Flows, Id, Place, place_of
from autotune.analyze.ascend.hostranges import HostCollector
from autotune.analyze.ascend.values import duration, moment
from autotune.analyze.intervals import Interval

COMPUTING, COMMUNICATION = "Computing", "Communication"
NOT_OVERLAPPED, FREE = "Communication(Not Overlapped)", "Free"
OVERLAP_NAMES = frozenset({COMPUTING, COMMUNICATION, NOT_OVERLAPPED, FREE})

_NOTHING: Mapping[str, Any] = {}


@dataclass
class Device:
    """What one process of the trace did on a device; threads first, times in nanoseconds."""

    tasks: list[tuple[Id, int, int, str, str]] = field(default_factory=list)
    calls: list[tuple[Id, int, int, str]] = field(default_factory=list)
    overlap: dict[str, list[Interval]] = field(default_factory=dict)


class Collector:
    """Everything that was taken so far, by process."""

    def __init__(self) -> None:
        self.host = HostCollector()
        self.devices: dict[Id, Device] = {}
        self.processes: dict[Id, str] = {}
        self.labels: dict[Id, str] = {}
        self.threads: dict[Place, str] = {}
        self.flows = Flows()
        self._seen: set[int] = set()

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of any kind; what is not needed or not readable is passed over."""
        phase, category = event.get("ph"), event.get("cat")
        if phase == "X":
            if category is None:
                self._take_device(event)
            elif category == "cpu_op":
                if self._is_new(event):
                    self.host.take(event)
            elif category in ("enqueue", "dequeue"):
                self.flows.take_queue(event)
        elif phase in ("s", "f") and isinstance(category, str):
            if category in FLOW_CATEGORIES:
                self.flows.take(event)
        elif phase == "M":
            self._take_name(event)

    def _take_device(self, event: Mapping[str, Any]) -> None:
        name, arguments = event.get("name"), _arguments(event)
        # `level`: an API of CANN, on the host. `task type`: a part of a collective.
        if not isinstance(name, str) or "level" in arguments or "task type" in arguments:
            return
        start, length = moment(event.get("ts")), duration(event.get("dur"))
        if start is None or length is None or not self._is_new(event):
            return
        process, thread = place_of(event)
        device = self.devices.setdefault(process, Device())
        kind = arguments.get("Task Type")
        if kind is not None:
            task = (thread, start, start + length, intern(name), intern(str(kind)))
            device.tasks.append(task)
        elif name in OVERLAP_NAMES:
            device.overlap.setdefault(name, []).append((start, start + length))
        else:
            device.calls.append((thread, start, start + length, intern(name)))

    def _take_name(self, event: Mapping[str, Any]) -> None:
        arguments, place = _arguments(event), place_of(event)
        what = event.get("name")
        if what == "process_name":
            self.processes[place[0]] = str(arguments.get("name", ""))
        elif what == "process_labels":
            self.labels[place[0]] = str(arguments.get("labels", ""))
        elif what == "thread_name":
            self.threads[place] = str(arguments.get("name", ""))

    def _is_new(self, event: Mapping[str, Any]) -> bool:
        """False for an event that is in the file twice: analysing again appends to it."""
        values = (event.get("ts"), event.get("pid"), event.get("tid"), event.get("name"))
        before = len(self._seen)
        self._seen.add(hash(tuple(map(str, values))))
        return len(self._seen) > before


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else _NOTHING
