"""One pass over a trace's events: what the analysis needs is kept, the rest is let go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from autotune.analyze.kineto.events import (
    Collective,
    DeviceTask,
    HostCall,
    Launch,
    MemoryChange,
    Recording,
    TaskKind,
)
from autotune.analyze.kineto.messages import (
    group_of,
    host_bytes,
    is_communication_kernel,
    is_communication_operator,
    is_communication_range,
    kernel_bytes,
    kernel_operation,
)
from autotune.analyze.trace_json import Event, nanoseconds
from autotune.measure.records import PHASES

# Categories; the capitalised ones are those of 2021.
_OPERATORS = ("cpu_op", "Operator")
_RANGES = ("user_annotation",)
_KERNELS = ("kernel", "concurrent_kernel", "Kernel")
_COPIES = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")
_CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
# Calls that put something on the device: cudaLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, ...
_LAUNCHING = ("Launch", "Memcpy", "Memset")
# Ranges that torch itself opens; old traces have them as operators.
_RANGE_NAMES = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.")
# Kineto writes it after everything that it recorded.
_LAST_MARK = "Record Window End"
# torch's DeviceType
_DEVICE_TYPES = {0: "cpu", 1: "cuda"}

Row = TypeVar("Row", HostCall, DeviceTask, Collective)


def collect(events: Iterable[Event]) -> Recording:
    """The recording of a trace. Events that occur twice count once."""
    collector = _Collector()
    for event in events:
        phase = event.get("ph")
        if phase == "X":
            collector.add_span(event)
        elif phase in ("i", "I"):
            collector.add_instant(event)
    return collector.recording()


@dataclass
class _Collector:
    operators: dict[str, list[HostCall]] = field(default_factory=dict)
    ranges: dict[str, list[HostCall]] = field(default_factory=dict)
    tasks: list[DeviceTask] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    starts: list[Collective] = field(default_factory=list)
    memory: list[MemoryChange] = field(default_factory=list)
    unreadable: int = 0
    closed: bool = False
    # Every name once: the parser makes a new text of each.
    names: dict[str, str] = field(default_factory=dict)

    def add_span(self, event: Event) -> None:
        """Keeps an event with a duration if it is of a kind that the analysis needs."""
        add = _ADD.get(str(event.get("cat")))
        if add is None:
            return
        start, duration = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if start is None or duration is None or duration < 0:
            self.unreadable += 1
            return
        name = str(event.get("name"))
        args = event.get("args")
        add(self, event, self._once(name), start, duration, args if isinstance(args, dict) else {})

    def _once(self, name: str) -> str:
        return self.names.setdefault(name, name)

    def _thread(self, event: Event) -> str:
        return self._once(f"{event.get('pid')}/{event.get('tid')}")

    def add_operator(
        self, event: Event, name: str, start: int, duration: int, args: dict[str, Any]
    ) -> None:
        """A host operator; old traces have ranges among them."""
        if name.startswith(_RANGE_NAMES) or name in PHASES:
            self.add_range(event, name, start, duration, args)
            return
        thread = self._thread(event)
        call = HostCall(start, start + duration, name, _integer(args.get("External id")))
        self.operators.setdefault(thread, []).append(call)
        if is_communication_operator(name):
            self.starts.append(
                Collective(call.start, call.end, name, group_of(args), host_bytes(args), thread)
            )

    def add_range(
        self, event: Event, name: str, start: int, duration: int, args: dict[str, Any]
    ) -> None:
        """A range on the host: torch's own or the user's."""
        thread = self._thread(event)
        call = HostCall(start, start + duration, name, _integer(args.get("External id")))
        self.ranges.setdefault(thread, []).append(call)
        if is_communication_range(name):
            self.collectives.append(
                Collective(call.start, call.end, name, group_of(args), host_bytes(args), thread)
            )

    def add_kernel(
        self, event: Event, name: str, start: int, duration: int, args: dict[str, Any]
    ) -> None:
        """A kernel; one that communicates is a collective as well."""
        kind = TaskKind.KERNEL
        if is_communication_kernel(name, args):
            kind = TaskKind.COMMUNICATION
            self.collectives.append(
                Collective(
                    start,
                    start + duration,
                    self._once(kernel_operation(name, args)),
                    self._once(group_of(args)),
                    kernel_bytes(args),
                    thread="",
                )
            )
        self._add_task(event, name, start, duration, args, kind)

    def add_copy(
        self, event: Event, name: str, start: int, duration: int, args: dict[str, Any]
    ) -> None:
        """A memcpy or memset on the device."""
        self._add_task(event, name, start, duration, args, TaskKind.COPY)

    def _add_task(
        self,
        event: Event,
        name: str,
        start: int,
        duration: int,
        args: dict[str, Any],
        kind: TaskKind,
    ) -> None:
        correlation = _integer(args.get("correlation"))
        stream = self._thread(event)
        self.tasks.append(DeviceTask(start, start + duration, name, correlation, kind, stream))

    def add_call(
        self, event: Event, name: str, start: int, _duration: int, args: dict[str, Any]
    ) -> None:
        """A call of the CUDA runtime or driver."""
        correlation = _integer(args.get("correlation"))
        if correlation >= 0 and any(part in name for part in _LAUNCHING):
            self.launches[correlation] = Launch(start, self._thread(event))

    def add_instant(self, event: Event) -> None:
        """Something without a duration: memory, or the marks at the end of the trace."""
        name = event.get("name")
        if name == "[memory]":
            self._add_memory(event)
        elif name == _LAST_MARK:
            self.closed = True

    def _add_memory(self, event: Event) -> None:
        args = event.get("args")
        at = nanoseconds(event.get("ts"))
        size = args.get("Bytes") if isinstance(args, dict) else None
        if at is None or not isinstance(args, dict) or not isinstance(size, int):
            self.unreadable += 1
            return
        self.memory.append(
            MemoryChange(
                at,
                size,
                _optional(args.get("Addr")),
                _optional(args.get("Total Allocated")),
                _optional(args.get("Total Reserved")),
                self._once(_device(args)),
                self._thread(event),
            )
        )

    def recording(self) -> Recording:
        """Everything collected, sorted."""
        tasks = _sorted(self.tasks)
        collectives = self.collectives
        if tasks or self.launches:
            # The host's ranges of the same name only launch what the device then does.
            collectives = [each for each in collectives if not each.thread]
        elif not collectives:
            collectives = self.starts
        return Recording(
            operators={thread: _sorted(calls) for thread, calls in self.operators.items()},
            ranges={thread: _sorted(calls) for thread, calls in self.ranges.items()},
            tasks=tasks,
            launches=self.launches,
            collectives=_sorted(collectives),
            starts=_sorted(self.starts),
            memory=_sorted_memory(self.memory),
            unreadable=self.unreadable,
            closed=self.closed,
        )


_ADD = {
    **dict.fromkeys(_OPERATORS, _Collector.add_operator),
    **dict.fromkeys(_RANGES, _Collector.add_range),
    **dict.fromkeys(_KERNELS, _Collector.add_kernel),
    **dict.fromkeys(_COPIES, _Collector.add_copy),
    **dict.fromkeys(_CALLS, _Collector.add_call),
}


def _sorted(rows: list[Row]) -> list[Row]:
    """By start, the one that ends later first, in the order of the file; none twice."""
    rows.sort(key=attrgetter("end"), reverse=True)
    rows.sort(key=attrgetter("start"))
    return list(_distinct(rows))


def _distinct(rows: Iterable[Row]) -> Iterator[Row]:
    start = -1
    seen: set[Row] = set()
    for row in rows:
        if row.start != start:
            start = row.start
            seen = {row}
        elif row in seen:
            continue
        else:
            seen.add(row)
        yield row


def _sorted_memory(changes: list[MemoryChange]) -> list[MemoryChange]:
    """By time. Without an address two equal changes may be two."""
    changes.sort(key=attrgetter("at"))
    kept: list[MemoryChange] = []
    for change in changes:
        if change.address is None or not kept or change != kept[-1]:
            kept.append(change)
    return kept


def _device(args: dict[str, Any]) -> str:
    kind = _DEVICE_TYPES.get(_integer(args.get("Device Type")), "other")
    index = _integer(args.get("Device Id"))
    return kind if kind == "cpu" or index < 0 else f"{kind}:{index}"


def _integer(value: object) -> int:
    """A number as it is, -1 for what is none."""
    return value if isinstance(value, int) else -1


def _optional(value: object) -> int | None:
    return value if isinstance(value, int) else None
