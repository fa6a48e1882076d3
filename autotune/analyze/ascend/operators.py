"""Operators by the time they took: on the device by kernel type, on the host by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.timeline import Timeline
from autotune.analyze.ascend.values import amount
from autotune.analyze.profile import OperatorTime

HOST = "host"
DEVICE = "npu"


@dataclass
class Sums:
    """Running sums of one operator, in microseconds."""

    count: int = 0
    total: float = 0.0
    own: float = 0.0
    longest: float = 0.0

    def add(self, duration: float, own: float = 0.0) -> None:
        """One more call."""
        self.count += 1
        self.total += duration
        self.own += own
        self.longest = max(self.longest, duration)


def from_statistic(table: Table) -> tuple[OperatorTime, ...]:
    """`op_statistic.csv`: one row a kernel type and core type, over all steps."""
    if table.lacks(("OP Type", "Count", "Total Time(us)")):
        return ()
    columns = ("OP Type", "Core Type", "Count", "Total Time(us)", "Max Time(us)")
    found = []
    for name, core, count, spent, longest in table.rows(*columns):
        calls, total = amount(count), amount(spent)
        if name and calls is not None and total is not None:
            where = core or DEVICE
            found.append(OperatorTime(name, where, int(calls), total, total, amount(longest)))
    return _by_time(found)


def from_details(table: Table) -> tuple[tuple[OperatorTime, ...], tuple[OperatorTime, ...]]:
    """`operator_details.csv`: operators of torch by time on the host, and by time on the device.

    The first includes and excludes what an operator called; device times are of the kernels
    that an operator launched by itself, so they add up.
    """
    if table.lacks(("Name", "Host Total Duration(us)")):
        return (), ()
    host: dict[str, Sums] = {}
    device: dict[str, Sums] = {}
    durations = ("Host Total Duration(us)", "Host Self Duration(us)", "Device Self Duration(us)")
    for name, total, own, on_device in table.rows("Name", *durations):
        spent, kernels = amount(total), amount(on_device)
        if spent is not None:
            host.setdefault(name, Sums()).add(spent, amount(own) or 0.0)
        if kernels:
            device.setdefault(name, Sums()).add(kernels, kernels)
    has_own = "Host Self Duration(us)" in table
    return (
        operators((name, HOST, sums, has_own) for name, sums in host.items()),
        operators((name, DEVICE, sums, True) for name, sums in device.items()),
    )


def from_timeline(timeline: Timeline) -> tuple[OperatorTime, ...]:
    """Kernels by name and task type."""
    kernels: dict[tuple[str, str], Sums] = {}
    for task in timeline.tasks:
        if task.computes or task.copies:
            spent = (task.end - task.start) / 1000
            kernels.setdefault((task.name, task.kind), Sums()).add(spent, spent)
    return operators((name, kind, sums, True) for (name, kind), sums in kernels.items())


def host_from_timeline(timeline: Timeline) -> tuple[OperatorTime, ...]:
    """Operators on the host with all they called; the trace alone does not part the two."""
    return tuple(
        OperatorTime(o.name, HOST, o.calls, o.total / 1000, None, o.longest / 1000)
        for o in timeline.host.operators
    )


def operators(rows: Iterable[tuple[str, str, Sums, bool]]) -> tuple[OperatorTime, ...]:
    """Sums by name and place as values, longest first; the flag says whether `own` is known."""
    return _by_time(
        OperatorTime(name, where, s.count, s.total, s.own if has_own else None, s.longest)
        for name, where, s, has_own in rows
    )


def _by_time(found: Iterable[OperatorTime]) -> tuple[OperatorTime, ...]:
    return tuple(sorted(found, key=lambda operator: (-operator.total_us, operator.name)))
