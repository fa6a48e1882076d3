"""What the databases say about steps, communication and memory."""

from __future__ import annotations

from autotune.analyze.ascend.communication import Facts, operation_of, step_of, total_size
from autotune.analyze.ascend.database import Database
from autotune.analyze.ascend.holders import Allocation
from autotune.analyze.ascend.links import counted, link_of, sum_links
from autotune.analyze.ascend.memory import Record, used_modules
from autotune.analyze.ascend.steps import COLUMNS, steps_of_rows
from autotune.analyze.ascend.values import amount, moment, number, whole
from autotune.analyze.profile import CollectiveTime, LinkTime, StepTime

_MS_IN_US = 1000.0
_MEMORY = """
    SELECT timestamp, value, totalAllocated, totalReserved
    FROM MEMORY_RECORD JOIN STRING_IDS ON STRING_IDS.id = component
"""
_MODULES = """
    SELECT timestampNs, ENUM_MODULE.name, totalReserved
    FROM NPU_MODULE_MEM JOIN ENUM_MODULE ON ENUM_MODULE.id = moduleId
"""
# `device` is the sum over the processes on the device, `app` this process.
_PROCESS = """
    SELECT timestampNs, hbm, ddr FROM NPU_MEM JOIN STRING_IDS ON STRING_IDS.id = type
    WHERE value = 'app'
"""
_ALLOCATIONS = """
    SELECT value, size, allocationTime, releaseTime
    FROM OP_MEMORY JOIN STRING_IDS ON STRING_IDS.id = name
"""
_TIME_COLUMNS = (
    "hccl_op_name, group_name, start_timestamp, elapse_time, transit_time, wait_time, "
    "synchronization_time, idle_time, step"
)
_LINK_COLUMNS = (
    "hccl_op_name, group_name, src_rank, dst_rank, transport_type, transit_size, transit_time"
)


def read_steps(database: Database) -> tuple[StepTime, ...]:
    """The table StepTraceTime, in microseconds as in the CSV."""
    names = list(COLUMNS.values())
    if not database.has("StepTraceTime", "step", *names):
        return ()
    device = "deviceId" if database.has("StepTraceTime", "deviceId") else "0"
    query = f"SELECT {device}, step, {', '.join(names)} FROM StepTraceTime"  # noqa: S608 - constants
    return steps_of_rows(
        (str(device), step, dict(zip(COLUMNS, map(number, cells), strict=True)))
        for device, step, *cells in database.rows(query)
    )


def read_calls(database: Database) -> list[Facts]:
    """CommAnalyzerTime, with the sizes of CommAnalyzerBandwidth."""
    if not database.has("CommAnalyzerTime", *_TIME_COLUMNS.split(", ")):
        return []
    sizes = _sizes(database)
    found = []
    query = f"SELECT {_TIME_COLUMNS} FROM CommAnalyzerTime"  # noqa: S608 - constants
    for name, group, start, elapsed, *times, step in database.rows(query):
        spent = amount(elapsed)
        if spent is None or str(name).casefold().startswith("total"):
            continue
        transit, wait, synchronization, idle = map(_us, times)
        time = CollectiveTime(
            operation=operation_of(str(name)),
            group=str(group),
            count=1,
            elapsed_us=spent * _MS_IN_US,
            step=step_of([str(step)]),
            transit_us=transit,
            wait_us=wait,
            synchronization_us=synchronization,
            idle_us=idle,
            size_bytes=sizes.get((str(name), str(group), str(step))),
        )
        found.append(Facts(str(name), moment(start), None, time))
    return found


def _us(milliseconds: object) -> float | None:
    value = amount(milliseconds)
    return None if value is None else value * _MS_IN_US


def _sizes(database: Database) -> dict[tuple[str, str, str], float]:
    """Bytes of each call. Each transport's size is repeated in a row a packet size."""
    columns = "hccl_op_name, group_name, step, transport_type, transit_size"
    if not database.has("CommAnalyzerBandwidth", *columns.split(", ")):
        return {}
    found: dict[tuple[str, str, str], dict[str, float | None]] = {}
    query = f"SELECT {columns} FROM CommAnalyzerBandwidth"  # noqa: S608 - constants
    for name, group, step, transport, size in database.rows(query):
        key = (str(name), str(group), str(step))
        found.setdefault(key, {})[str(transport)] = amount(size)
    sizes = ((key, total_size(transports)) for key, transports in found.items())
    return {key: size for key, size in sizes if size is not None}


def read_links(database: Database) -> tuple[LinkTime, ...]:
    """CommAnalyzerMatrix, summed over calls and steps."""
    if not database.has("CommAnalyzerMatrix", *_LINK_COLUMNS.split(", ")):
        return ()
    query = f"SELECT {_LINK_COLUMNS} FROM CommAnalyzerMatrix"  # noqa: S608 - constants
    links = (
        link_of(f"{source}-{target}", transport, size, spent, str(group))
        for name, group, source, target, transport, size, spent in database.rows(query)
        if counted(str(name))
    )
    return sum_links(link for link in links if link is not None)


def read_memory(database: Database) -> list[Record]:
    """MEMORY_RECORD, NPU_MEM of the process (`APP`) and NPU_MODULE_MEM."""
    found: list[Record] = []
    if database.has("MEMORY_RECORD", "component", "timestamp", "totalAllocated", "totalReserved"):
        for time, component, allocated, reserved in database.rows(_MEMORY):
            _add(found, time, str(component), amount(allocated), amount(reserved))
    if database.has("NPU_MEM", "type", "hbm", "ddr", "timestampNs"):
        for time, hbm, ddr in database.rows(_PROCESS):
            _add(found, time, "APP", None, (amount(hbm) or 0.0) + (amount(ddr) or 0.0))
    return found + used_modules(_modules(database))


def _modules(database: Database) -> list[Record]:
    found: list[Record] = []
    if database.has("NPU_MODULE_MEM", "moduleId", "timestampNs", "totalReserved"):
        for time, module, reserved in database.rows(_MODULES):
            _add(found, time, f"module {module}", None, amount(reserved))
    return found


def _add(
    records: list[Record], time: object, name: str, allocated: float | None, reserved: float | None
) -> None:
    at = whole(time)
    if at is not None and (allocated is not None or reserved is not None):
        records.append(Record(at, name, allocated, reserved))


def read_allocations(database: Database) -> list[Allocation]:
    """OP_MEMORY, in bytes and nanoseconds."""
    if not database.has("OP_MEMORY", "name", "size", "allocationTime", "releaseTime"):
        return []
    return [
        Allocation(str(name), size, whole(begin), whole(end))
        for name, cell, begin, end in database.rows(_ALLOCATIONS)
        if (size := amount(cell)) and not str(name).startswith("cann::")
    ]
