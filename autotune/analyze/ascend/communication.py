"""Collectives: `communication.json` and its cluster form, else the trace's or the kernels'.

The JSON nests `step -> p2p|collective -> operation@group -> facts`, the cluster's file
`group -> step -> operation@group -> rank -> facts`; older files lack levels. What counts is
where `Communication Time Info` is found and the names on the way there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.analyze.ascend.timeline import Call, Timeline
from autotune.analyze.ascend.values import amount, moment
from autotune.analyze.ascend.windows import window_at
from autotune.analyze.intervals import total, within
from autotune.analyze.profile import CollectiveTime

_TIMES, _BANDWIDTH = "Communication Time Info", "Communication Bandwidth Info"
_STEP = re.compile(r"step(\d+)")
_OPERATION = re.compile(r"hcom_([A-Za-z]+)")
_MB = 1e6  # `2.064384` MB is 2064384 bytes in the trace of the same transfer
_MS_IN_US = 1000.0
# The same call in another file: starts are rounded to a quarter of a microsecond, and
# databases correct the device's clock by some tens of them; durations agree.
_SAME_START_NS, _SAME_LENGTH = 1_000_000, 0.01


@dataclass(frozen=True)
class Facts:
    """One call as the file names it: `name` with its running numbers, and when it began."""

    name: str
    start: int | None
    rank: int | None
    time: CollectiveTime


def read_communication(content: Any) -> list[Facts]:
    """Every call in the JSON. What has no elapsed time is passed over."""
    return [facts for path, info in _found(content, ()) if (facts := _facts(path, info))]


def _found(content: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(content, dict):
        return
    if _TIMES in content:
        yield path, content
        return
    for key, value in content.items():
        yield from _found(value, (*path, str(key)))


def _facts(path: Sequence[str], info: Mapping[str, Any]) -> Facts | None:
    times = info[_TIMES]
    named = [key for key in path if "@" in key]
    # `Total Op Info`, which repeats what the others add up to, is of no group.
    if not named or not isinstance(times, dict):
        return None
    elapsed = _us(times, "Elapse Time(ms)")
    if elapsed is None:
        return None
    name, _, group = named[-1].partition("@")
    rank = path[-1] if path[-1].isdigit() else ""
    time = CollectiveTime(
        operation=operation_of(name),
        group=group,
        count=1,
        elapsed_us=elapsed,
        step=step_of(path),
        transit_us=_us(times, "Transit Time(ms)"),
        wait_us=_us(times, "Wait Time(ms)"),
        synchronization_us=_us(times, "Synchronization Time(ms)"),
        idle_us=_us(times, "Idle Time(ms)"),
        size_bytes=_size(info.get(_BANDWIDTH)),
    )
    start = moment(times.get("Start Timestamp(us)"))
    return Facts(name, start, int(rank) if rank else None, time)


def step_of(path: Sequence[str]) -> int | None:
    """The step that one of the keys names; `step` alone is a profile without steps."""
    found = [match for key in path if (match := _STEP.fullmatch(key))]
    return int(found[0][1]) if found else None


def operation_of(name: str) -> str:
    """`hcom_allReduce__586_0_1` is an `allReduce`."""
    match = _OPERATION.match(name)
    return match[1] if match else name


def _us(times: Mapping[str, Any], key: str) -> float | None:
    value = amount(times.get(key))
    return None if value is None else value * _MS_IN_US


def _size(bandwidth: object) -> float | None:
    """Bytes over all links. `SDMA` repeats what HCCS, PCIE and SIO moved within a server."""
    if not isinstance(bandwidth, dict):
        return None
    sizes = {
        str(transport): amount(facts.get("Transit Size(MB)"))
        for transport, facts in bandwidth.items()
        if isinstance(facts, dict)
    }
    return total_size(sizes)


def total_size(megabytes: Mapping[str, float | None]) -> float | None:
    """Bytes by all transports, given megabytes by each."""
    known = {transport: size for transport, size in megabytes.items() if size is not None}
    if not known:
        return None
    within_server = sum(size for name, size in known.items() if name not in ("SDMA", "RDMA"))
    return _MB * (max(known.get("SDMA", 0.0), within_server) + known.get("RDMA", 0.0))


def collectives_of(facts: Sequence[Facts], timeline: Timeline | None) -> tuple[CollectiveTime, ...]:
    """The calls, with what computing hid of each where the timeline has the same call."""
    calls: dict[str, list[Call]] = {}
    for call in timeline.calls if timeline else ():
        calls.setdefault(call.name, []).append(call)
    return tuple(_with_overlap(fact, calls.get(fact.name, ()), timeline) for fact in facts)


def _with_overlap(fact: Facts, calls: Sequence[Call], timeline: Timeline | None) -> CollectiveTime:
    call = _same_call(fact, calls)
    if call is None or timeline is None:
        return fact.time
    return replace(fact.time, overlapped_us=_overlapped(call, timeline))


def _same_call(fact: Facts, calls: Sequence[Call]) -> Call | None:
    if fact.start is None:
        return calls[0] if len(calls) == 1 else None
    at = bisect_left(calls, fact.start, key=_start)
    nearest = min(
        calls[max(at - 1, 0) : at + 1],
        key=lambda call: abs(call.start - (fact.start or 0)),
        default=None,
    )
    if nearest is None or abs(nearest.start - fact.start) > _SAME_START_NS:
        return None
    elapsed = fact.time.elapsed_us * 1000
    longer = abs(nearest.end - nearest.start - elapsed)
    return nearest if longer <= max(_SAME_LENGTH * elapsed, 1000) else None


def _start(call: Call) -> int:
    return call.start


def _overlapped(call: Call, timeline: Timeline) -> float:
    return total(within(timeline.overlap.computing, call.start, call.end)) / 1000


def collectives_from_timeline(timeline: Timeline) -> tuple[CollectiveTime, ...]:
    """Calls with their elapsed and overlapped time; nothing says what waited and what moved."""
    found = []
    for call in timeline.calls:
        window = window_at(timeline.windows, call.start)
        found.append(
            CollectiveTime(
                operation=operation_of(call.name),
                group=call.group,
                count=1,
                elapsed_us=(call.end - call.start) / 1000,
                step=None if window is None else window.number,
                overlapped_us=_overlapped(call, timeline),
            )
        )
    return tuple(found)
