"""`ascend_pytorch_profiler_<rank>.db` -> `Timeline`.

A task's `connectionId` is one of the `CONNECTION_IDS` of the operator in PYTORCH_API that
launched it (torch_npu 2.13, `_fwk_api_db_parser`).
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

from autotune.analyze.ascend.database import Database
from autotune.analyze.ascend.hostranges import HostCollector
from autotune.analyze.ascend.timeline import Call, Host, Task, Timeline, is_computing, overlap_of
from autotune.analyze.ascend.values import whole
from autotune.analyze.ascend.windows import ends_by_start, windows_of

# ENUM_API_TYPE: an operator of torch, not the task queue (50002) or Python's frames (50003).
_TORCH_OPERATOR = 50001

_TASKS = """
    SELECT TASK.startNs, TASK.endNs, names.value, kernels.value, kinds.value, TASK.connectionId,
           TASK.deviceId
    FROM TASK
    LEFT JOIN COMPUTE_TASK_INFO ON COMPUTE_TASK_INFO.globalTaskId = TASK.globalTaskId
    LEFT JOIN STRING_IDS AS names ON names.id = COMPUTE_TASK_INFO.name
    LEFT JOIN STRING_IDS AS kernels ON kernels.id = COMPUTE_TASK_INFO.taskType
    LEFT JOIN STRING_IDS AS kinds ON kinds.id = TASK.taskType
"""
_PLAIN_TASKS = """
    SELECT TASK.startNs, TASK.endNs, NULL, NULL, kinds.value, TASK.connectionId, TASK.deviceId
    FROM TASK LEFT JOIN STRING_IDS AS kinds ON kinds.id = TASK.taskType
"""
_CALLS = """
    SELECT startNs, endNs, names.value, groups.value, connectionId
    FROM COMMUNICATION_OP
    LEFT JOIN STRING_IDS AS names ON names.id = opName
    LEFT JOIN STRING_IDS AS groups ON groups.id = groupName
"""
_OPERATORS = """
    SELECT startNs, endNs, value FROM PYTORCH_API JOIN STRING_IDS ON STRING_IDS.id = name
    WHERE type = ?
"""
# Of the operators around each other that claim a task, the innermost began last.
_LAUNCHES = """
    SELECT CONNECTION_IDS.connectionId, MAX(CAST(startNs AS INTEGER))
    FROM PYTORCH_API JOIN CONNECTION_IDS ON CONNECTION_IDS.id = PYTORCH_API.connectionId
    WHERE type = ? GROUP BY CONNECTION_IDS.connectionId
"""


def read_timeline(database: Database) -> Timeline | None:
    """The timeline of the device that has most tasks; None where there is no table TASK."""
    if not database.has("TASK", "startNs", "endNs", "taskType", "connectionId", "deviceId"):
        return None
    launches = _launches(database)
    devices: dict[object, list[tuple[Task, int | None]]] = {}
    for task, device, connection in _tasks(database, launches):
        devices.setdefault(device, []).append((task, connection))
    busiest = max(devices, key=lambda device: len(devices[device]), default=None)
    linked = devices.get(busiest, [])
    connections = {connection for _, connection in linked}
    calls = _calls(database, connections)
    tasks = sorted(task for task, _ in linked)
    return _timeline(database, tasks, calls, launches, tuple(devices))


def _timeline(
    database: Database,
    tasks: Sequence[Task],
    calls: Sequence[tuple[Call, int | None]],
    launches: dict[int, int],
    devices: tuple[object, ...],
) -> Timeline:
    found = sorted(call for call, _ in calls)
    host = _host(database)
    starts = [(task.launch, task.start) for task in tasks if task.launch is not None]
    starts += [(launches[c], call.start) for call, c in calls if c in launches]
    return Timeline(
        tasks=tasks,
        calls=found,
        overlap=overlap_of(tasks, found),
        host=host,
        windows=windows_of(host, starts, ends_by_start(tasks, found)),
        linked=bool(starts) or not host.steps,
        other_devices=tuple(f"NPU {device}" for device in devices[1:]),
    )


def _tasks(database: Database, launches: dict[int, int]) -> list[tuple[Task, object, int | None]]:
    named = database.has("COMPUTE_TASK_INFO", "globalTaskId", "name", "taskType")
    found = []
    for start, end, name, kernel, kind, connection, device in database.rows(
        _TASKS if named else _PLAIN_TASKS
    ):
        begin, stop = whole(start), whole(end)
        if begin is None or stop is None or stop < begin:
            continue
        title = intern(str(name if name is not None else kind or ""))
        of_kernel = name is not None if named else None
        type_name = _kind(str(kernel or ""), str(kind or ""), of_kernel=of_kernel)
        task = Task(begin, stop, title, intern(type_name), launches.get(connection))
        found.append((task, device, connection))
    return found


def _kind(kernel: str, task: str, *, of_kernel: bool | None) -> str:
    """The kind of a task, given those of its two tables and whether it is in that of kernels.

    Level 0 has `N/A` for kernels. What is a core's task but no kernel belongs to a collective.
    """
    if of_kernel is None:
        return task
    if of_kernel:
        return next((kind for kind in (kernel, task) if is_computing(kind)), "AI_CORE")
    return "" if is_computing(task) else task


def _calls(database: Database, connections: set[int | None]) -> list[tuple[Call, int | None]]:
    if not database.has("COMMUNICATION_OP", "opName", "startNs", "endNs", "groupName"):
        return []
    found = []
    for start, end, name, group, connection in database.rows(_CALLS):
        begin, stop = whole(start), whole(end)
        if begin is None or stop is None or stop < begin:
            continue
        if connection in connections or not connections:
            call = Call(begin, stop, intern(str(name or "")), str(group or ""))
            found.append((call, connection))
    return found


def _launches(database: Database) -> dict[int, int]:
    if not database.has("CONNECTION_IDS", "id", "connectionId"):
        return {}
    if not database.has("PYTORCH_API", "startNs", "connectionId", "type"):
        return {}
    rows = database.rows(_LAUNCHES, _TORCH_OPERATOR)
    return {connection: start for connection, start in rows if whole(start) is not None}


def _host(database: Database) -> Host:
    collector = HostCollector()
    if database.has("PYTORCH_API", "startNs", "endNs", "name", "type"):
        for start, end, name in database.rows(_OPERATORS, _TORCH_OPERATOR):
            begin, stop = _nanoseconds(start), _nanoseconds(end)
            if begin is not None and stop is not None and stop >= begin:
                collector.add(str(name), begin, stop)
    if database.has("STEP_TIME", "id", "startNs", "endNs"):
        for step, start, end in database.rows("SELECT id, startNs, endNs FROM STEP_TIME"):
            number, begin, stop = whole(step), whole(start), whole(end)
            if number is not None and begin is not None and stop is not None:
                collector.add_step(number, begin, stop)
    return collector.finish()


def _nanoseconds(cell: object) -> int | None:
    """PYTORCH_API writes its times as text; a float would not hold them."""
    if isinstance(cell, int):
        return cell
    return int(cell) if isinstance(cell, str) and cell.strip().isdigit() else None
