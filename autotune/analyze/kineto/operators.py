"""Time by operator on the host and by kernel on the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autotune.analyze.kineto.events import DeviceTask, HostCall, Recording
from autotune.analyze.profile import OperatorTime

HOST = "host"


@dataclass
class _Sum:
    count: int = 0
    total: int = 0
    own: int = 0
    longest: int = 0

    def add(self, length: int) -> None:
        self.count += 1
        self.total += length
        self.longest = max(self.longest, length)


def operator_times(recording: Recording) -> tuple[OperatorTime, ...]:
    """Host operators and device tasks by name, the longest in total first.

    A call inside another of the same name (`aten::div` of a number calls that of a tensor)
    counts with it.
    """
    times = [*_host_times(recording), *_device_times(recording.tasks, recording.device)]
    return tuple(sorted(times, key=lambda each: -each.total_us))


def _host_times(recording: Recording) -> Iterator[OperatorTime]:
    sums: dict[str, _Sum] = {}
    for calls in recording.operators.values():
        _add_calls(calls, sums)
    for name, each in sums.items():
        yield OperatorTime(
            name=name,
            where=HOST,
            count=each.count,
            total_us=each.total / 1000,
            self_us=each.own / 1000,
            longest_us=each.longest / 1000,
        )


def _device_times(tasks: Iterable[DeviceTask], device: str) -> Iterator[OperatorTime]:
    sums: dict[str, _Sum] = {}
    for task in tasks:
        sums.setdefault(task.name, _Sum()).add(task.end - task.start)
    for name, each in sums.items():
        yield OperatorTime(
            name=name,
            where=device,
            count=each.count,
            total_us=each.total / 1000,
            longest_us=each.longest / 1000,
        )


def _add_calls(calls: Iterable[HostCall], sums: dict[str, _Sum]) -> None:
    """Adds the calls of one thread, the outer first."""
    stack: list[HostCall] = []
    open_names: Counter[str] = Counter()
    for call in calls:
        while stack and stack[-1].end <= call.start:
            open_names[stack.pop().name] -= 1
        each = sums.setdefault(call.name, _Sum())
        length = call.end - call.start
        each.own += length
        if not open_names[call.name]:
            each.add(length)
        if stack:
            sums[stack[-1].name].own -= min(call.end, stack[-1].end) - call.start
        open_names[call.name] += 1
        stack.append(call)
