"""`kernel_details.csv`: every kernel and collective with its start and duration.

Level 0 has few columns, and `N/A` for types and cores of everything but collectives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import intern

from autotune.analyze.ascend.operators import DEVICE, Sums, operators
from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.timeline import (
    Call,
    Host,
    HostStep,
    Task,
    Timeline,
    Window,
    overlap_of,
)
from autotune.analyze.ascend.values import duration, moment, whole
from autotune.analyze.profile import OperatorTime

_NEEDED = ("Name", "Start Time(us)", "Duration(us)")
_COLUMNS = ("Device_id", "Step Id", *_NEEDED[:1], "Type", "Accelerator Core", *_NEEDED[1:])
# What `Accelerator Core` says of a collective, in older and newer versions.
_COLLECTIVE_CORES = frozenset({"HCCL", "COMMUNICATION"})
_UNKNOWN = frozenset({"", "N/A"})
_FOREVER = 1 << 62


@dataclass(frozen=True)
class Kernels:
    """timeline: without a host; its windows are the steps that the rows name."""

    timeline: Timeline
    operators: tuple[OperatorTime, ...]


@dataclass
class _Rows:
    """What was read of one device."""

    tasks: list[Task] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    steps: dict[int, list[int]] = field(default_factory=dict)
    sums: dict[tuple[str, str], Sums] = field(default_factory=dict)
    seen: set[tuple[int, str]] = field(default_factory=set)


def read_kernels(table: Table) -> Kernels | None:
    """The kernels of the device that has most; None without the columns that times need."""
    if table.lacks(_NEEDED):
        return None
    devices: dict[str, _Rows] = {}
    for device, step, name, kind, core, begin, length in table.rows(*_COLUMNS):
        start, spent = moment(begin), duration(length)
        if not name or start is None or spent is None:
            continue
        rows = devices.setdefault(device, _Rows())
        if (start, name) in rows.seen:
            continue
        rows.seen.add((start, name))
        _add(rows, name, kind, core, (start, start + spent))
        number = whole(step)
        if number is not None:
            span = rows.steps.setdefault(number, [start, start + spent])
            span[:] = min(span[0], start), max(span[1], start + spent)
    if not devices:
        return None
    busiest = max(devices, key=lambda device: (len(devices[device].tasks), device))
    others = tuple(f"NPU {device}" for device in devices if device != busiest)
    return _kernels(devices[busiest], others, cut=table.cut)


def _add(rows: _Rows, name: str, kind: str, core: str, span: tuple[int, int]) -> None:
    if core in _COLLECTIVE_CORES or name.startswith("hcom_"):
        rows.calls.append(Call(*span, intern(name), ""))
        return
    where = DEVICE if core in _UNKNOWN else intern(core)
    # The file lists kernels that compute and collectives alone, so an unknown core computes.
    rows.tasks.append(Task(*span, intern(name), "AI_CORE"))
    spent = (span[1] - span[0]) / 1000
    key = (intern(name if kind in _UNKNOWN else kind), where)
    rows.sums.setdefault(key, Sums()).add(spent, spent)


def _kernels(rows: _Rows, others: tuple[str, ...], *, cut: bool) -> Kernels:
    tasks, calls = sorted(rows.tasks), sorted(rows.calls)
    steps = sorted((span[0], span[1], number) for number, span in rows.steps.items())
    windows = [Window(HostStep(number, start, end), start, end) for start, end, number in steps]
    timeline = Timeline(
        tasks=tasks,
        calls=calls,
        overlap=overlap_of(tasks, calls),
        host=Host(),
        windows=tuple(windows) or (Window(None, -_FOREVER, _FOREVER),),
        cut=cut,
        other_devices=others,
    )
    sums = ((name, where, value, True) for (name, where), value in rows.sums.items())
    return Kernels(timeline, operators(sums))
