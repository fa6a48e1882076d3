"""`trace_view.json` -> `Timeline`, in one pass. Devices are sorted out at its end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.analyze.ascend.events import (
    COMMUNICATION,
    COMPUTING,
    FREE,
    NOT_OVERLAPPED,
    OVERLAP_NAMES,
    Collector,
)
from autotune.analyze.ascend.flows import Id, Launches
from autotune.analyze.ascend.timeline import Call, Overlap, Task, Timeline, overlap_of
from autotune.analyze.ascend.windows import ends_by_start, windows_of
from autotune.analyze.intervals import Interval, total, union
from autotune.analyze.trace_json import read_events

# Older versions name the process by the library.
_COLLECTIVE_PROCESSES = frozenset({"HCCL", "Communication"})
_GROUP_THREAD = re.compile(r"Group (.+) Communication")


def read_timeline(path: Path) -> Timeline:
    """The timeline of one device; raises `UserError` where the file is no trace."""
    trace = read_events(path)
    collector = Collector()
    for event in trace.events():
        collector.take(event)
    return _timeline(collector, cut=trace.cut)


def _timeline(collector: Collector, *, cut: bool) -> Timeline:
    names = _device_names(collector)
    device = _busiest(collector, names)
    pids = [pid for pid, name in names.items() if name == device]
    launches = collector.flows.launches()
    tasks = _tasks(collector, pids, launches)
    calls = _calls(collector, pids)
    host = collector.host.finish()
    # Launches on the chosen device alone: of kernels, copies and collectives alike.
    linked = [(launch, at) for ((pid, _), at), launch in launches.items() if pid in pids]
    recorded = _recorded_overlap(collector, pids)
    if recorded is None or (cut and tasks):
        # Of a cut file the analysis may be missing in part where the kernels are whole.
        recorded = overlap_of(tasks, calls)
    return Timeline(
        tasks=tasks,
        calls=calls,
        overlap=recorded,
        host=host,
        windows=windows_of(host, linked, ends_by_start(tasks, calls)),
        linked=bool(linked) or not host.steps,
        cut=cut,
        other_devices=tuple(sorted(set(names.values()) - {device})),
    )


def _device_names(collector: Collector) -> dict[Id, str]:
    """The label of each process on a device: `NPU`, `NPU 3`."""
    labels = {pid: collector.labels.get(pid, "NPU") for pid in collector.devices}
    return {pid: label for pid, label in labels.items() if not label.startswith("CPU")}


def _busiest(collector: Collector, names: Mapping[Id, str]) -> str:
    busy: dict[str, int] = {}
    for pid, name in names.items():
        device = collector.devices[pid]
        computing = total(device.overlap.get(COMPUTING, []))
        computing += sum(end - start for _, start, end, _, _ in device.tasks)
        busy[name] = busy.get(name, 0) + computing
    return max(busy, key=lambda name: (busy[name], name), default="NPU")


def _tasks(collector: Collector, pids: Sequence[Id], launches: Launches) -> list[Task]:
    found = (
        Task(start, end, name, kind, launches.get(((pid, tid), start)))
        for pid in pids
        for tid, start, end, name, kind in collector.devices[pid].tasks
    )
    return sorted(found, key=lambda task: (task.start, task.end))


def _calls(collector: Collector, pids: Sequence[Id]) -> list[Call]:
    """Whole collectives; the transfers that each consists of run in threads named `Plane ...`."""
    found = []
    for pid in pids:
        if collector.processes.get(pid) not in _COLLECTIVE_PROCESSES:
            continue
        for tid, start, end, name in collector.devices[pid].calls:
            thread = collector.threads.get((pid, tid), "")
            group = _GROUP_THREAD.fullmatch(thread)
            if group or not thread.startswith("Plane"):
                found.append(Call(start, end, name, group[1] if group else thread))
    return sorted(found)


def _recorded_overlap(collector: Collector, pids: Sequence[Id]) -> Overlap | None:
    found: dict[str, list[Interval]] = {name: [] for name in OVERLAP_NAMES}
    for pid in pids:
        for name, intervals in collector.devices[pid].overlap.items():
            found[name] += intervals
    if not any(found.values()):
        return None
    return Overlap(
        computing=union(found[COMPUTING]),
        communication=union(found[COMMUNICATION]),
        not_overlapped=union(found[NOT_OVERLAPPED]),
        free=union(found[FREE]),
    )
