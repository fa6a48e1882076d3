"""Device memory: `memory_record.csv`, `npu_module_mem.csv`, `operator_memory.csv`.

Components: `PTA` is torch's allocator, `GE` the graph engine's, `APP` the whole process as the
driver sees it; `module HCCL` and its like are what CANN's modules hold beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from autotune.analyze.ascend.holders import Allocation, holders_at
from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.values import amount, moment
from autotune.analyze.profile import MemoryPoint, MemoryUse

ALLOCATOR = "PTA"
_MIB, _KIB = 1024.0**2, 1024.0
# Enough for a curve. Of the records in between, the largest of each stretch is kept.
_MOST_POINTS = 2000


class Record(NamedTuple):
    """Bytes of one component at one moment (nanoseconds)."""

    time: int
    component: str
    allocated: float | None
    reserved: float | None

    @property
    def largest(self) -> float:
        """The larger of both figures."""
        return max(self.allocated or 0.0, self.reserved or 0.0)


def read_records(table: Table) -> list[Record]:
    """`memory_record.csv`: the components on the device over time."""
    columns = ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)")
    found = []
    for component, at, allocated, reserved, device in table.rows(*columns, "Device Type"):
        time = moment(at)
        record = (_bytes(allocated, _MIB), _bytes(reserved, _MIB))
        if component and time is not None and record != (None, None) and device != "CPU":
            found.append(Record(time, component, *record))
    return found


def read_modules(table: Table) -> list[Record]:
    """`npu_module_mem.csv`: CANN's modules, those that ever held anything."""
    columns = ("Component", "Timestamp(us)", "Total Reserved(MB)")
    found = []
    for component, at, reserved in table.rows(*columns):
        time, size = moment(at), _bytes(reserved, _MIB)
        if component and time is not None and size is not None:
            found.append(Record(time, f"module {component}", None, size))
    return used_modules(found)


def used_modules(records: Sequence[Record]) -> list[Record]:
    """Without the modules, some 60, that hold nothing all the time."""
    used = {record.component for record in records if record.largest > 0}
    return [record for record in records if record.component in used]


def read_allocations(table: Table) -> list[Allocation]:
    """`operator_memory.csv`: the allocations of torch's operators."""
    columns = ("Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Device Type")
    return [
        Allocation(name, size, moment(begin), moment(end))
        for name, cell, begin, end, device in table.rows(*columns)
        # `cann::` is what the graph engine allocated, of its own memory.
        if (size := _bytes(cell, _KIB)) and not name.startswith("cann::") and device != "CPU"
    ]


def records_of_allocations(table: Table) -> list[Record]:
    """What `operator_memory.csv` says of the allocator's totals, where no record is there."""
    found = []
    for when, total in (("Allocation Time(us)", "Allocation"), ("Release Time(us)", "Release")):
        columns = (when, f"{total} Total Allocated(MB)", f"{total} Total Reserved(MB)")
        for name, at, allocated, reserved in table.rows("Name", *columns):
            time, size = moment(at), _bytes(allocated, _MIB)
            if time is not None and size is not None and not name.startswith("cann::"):
                found.append(Record(time, ALLOCATOR, size, _bytes(reserved, _MIB)))
    return found


def _bytes(cell: str, unit: float) -> float | None:
    value = amount(cell)
    return None if value is None else value * unit


def memory_of(
    records: Sequence[Record], allocations: Iterable[Allocation], origin: int
) -> MemoryUse | None:
    """Everything in one value; None where there is no record."""
    if not records:
        return None
    by_component: dict[str, list[Record]] = {}
    for record in records:
        by_component.setdefault(record.component, []).append(record)
    framework = [r for r in by_component.get(ALLOCATOR, ()) if r.allocated is not None]
    peak = max(framework, key=lambda record: (record.allocated or 0.0, -record.time), default=None)
    points = (point for found in by_component.values() for point in _points(found, origin))
    return MemoryUse(
        points=tuple(sorted(points, key=lambda point: (point.component, point.time_us))),
        peaks_bytes=_peaks(by_component),
        peak_at_us=None if peak is None else (peak.time - origin) / 1000,
        holders=() if peak is None else holders_at(peak.time, peak.allocated, allocations, origin),
    )


def _peaks(by_component: Mapping[str, Sequence[Record]]) -> dict[str, float]:
    peaks = {name: max(r.largest for r in found) for name, found in by_component.items()}
    return dict(sorted(peaks.items(), key=lambda item: (-item[1], item[0])))


def _points(records: Sequence[Record], origin: int) -> list[MemoryPoint]:
    ordered = sorted(records)
    stride = -(-len(ordered) // _MOST_POINTS)
    kept = [max(ordered[i : i + stride], key=_by_size) for i in range(0, len(ordered), stride)]
    # The driver's figures for a process and its modules are of one kind: reserved.
    return [
        MemoryPoint(
            time_us=(r.time - origin) / 1000,
            component=r.component,
            allocated_bytes=r.largest if r.allocated is None else r.allocated,
            reserved_bytes=r.reserved,
        )
        for r in kept
    ]


def _by_size(record: Record) -> tuple[float, float]:
    return record.allocated or 0.0, record.largest
