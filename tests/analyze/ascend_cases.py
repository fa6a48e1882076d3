"""A step small enough to reckon on paper, as torch_npu writes it.

Microseconds from the step's start (host above, device below):

    0          100    200    300    400   450 480      600                      1000
    |--loader--|--fwd-|      |--bwd-|   clip |-optimizer-|                        |
                  |--K1---| |---K2----|                 |K3||-K4-|
                 150     350 360     560              720 740 760 860
                                |----allReduce----|
                               500               700
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ORIGIN = 1736408883000000  # microseconds since the epoch: no float holds them to the nanosecond
HOST, HARDWARE, HCCL, OVERLAP = 3096, 3170820512, 3170820576, 3170820832

# By hand, from the picture.
STEP = {
    "computing_us": 520.0,
    "communication_us": 200.0,
    "not_overlapped_us": 140.0,
    "overlapped_us": 60.0,
    "free_us": 50.0,
    "stage_us": 710.0,
    "preparing_us": 150.0,
}
PHASES = {
    "data_loading": 100.0,
    "forward_backward": 400.0,
    "optimizer": 100.0,
    "post_processing": 20.0,
    "communication": 140.0,
    "scheduling": 240.0,
}
# name, launched on the host, start and end on the device
KERNELS = (
    ("MatMul", 110, 150, 350),
    ("MatMulGrad", 310, 360, 560),
    ("ClipNorm", 452, 720, 740),
    ("ApplyAdamW", 490, 760, 860),
)
FREE = ((350, 360), (700, 720), (740, 760))
Event = dict[str, Any]


def us(time: float) -> str:
    """A timestamp as text, as torch_npu writes it."""
    whole, nanoseconds = divmod(round(time * 1000), 1000)
    return f"{ORIGIN + whole}.{nanoseconds:03d}"


def complete(name: str, pid: int, tid: int, start: float, end: float, **rest: Any) -> Event:
    """One event with a duration."""
    times = {"ts": us(start), "dur": round(end - start, 3)}
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, **times, **rest}


def metadata() -> list[Event]:
    """Names of processes and threads."""
    labels = {HOST: "CPU", HARDWARE: "NPU", HCCL: "NPU", OVERLAP: "NPU"}
    names = {HOST: "Python", HARDWARE: "Ascend Hardware", HCCL: "HCCL", OVERLAP: "Overlap Analysis"}
    found = []
    for pid, name in names.items():
        for key, args in (("name", {"name": name}), ("labels", {"labels": labels[pid]})):
            found.append({"ph": "M", "name": f"process_{key}", "pid": pid, "tid": 0, "args": args})
    group = {"name": "Group 0 Communication"}
    found.append({"ph": "M", "name": "thread_name", "pid": HCCL, "tid": 0, "args": group})
    return found


def host(at: float = 0, number: int = 7) -> list[Event]:
    """The host's side of one step that starts at `at`."""
    ranges = (
        (f"ProfilerStep#{number}", 0, 1000),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 100),
        ("aten::matmul", 100, 200),
        ("autograd::engine::evaluate_function: MmBackward0", 300, 400),
        ("aten::norm", 450, 460),
        ("Optimizer.step#AdamW.step", 480, 600),
    )
    return [
        complete(name, HOST, HOST, at + start, at + end, cat="cpu_op", args={})
        for name, start, end in ranges
    ]


def flow(key: object, launched: float, landed: float, pid: int, tid: int) -> list[Event]:
    """The arrow from an operator to what it launched."""
    common = {"name": "torch_to_npu", "id": key, "cat": "async_npu"}
    return [
        {"ph": "s", **common, "pid": HOST, "tid": HOST, "ts": us(launched)},
        {"ph": "f", **common, "pid": pid, "tid": tid, "ts": us(landed)},
    ]


def device(
    at: float = 0, lag: float = 0, collective: str = "hcom_allReduce__586_0_1", offset: int = 0
) -> list[Event]:
    """The device's side, with the arrows. It runs `lag` later than the host would have it."""
    events = []
    begin = at + lag
    for number, (name, launched, start, end) in enumerate(KERNELS):
        args = {"Task Type": "AI_CORE"}
        events.append(complete(name, HARDWARE, 2, begin + start, begin + end, args=args))
        events += flow(offset + number, at + launched, begin + start, HARDWARE, 2)
    events.append(complete(collective, HCCL, 0, begin + 500, begin + 700, args={"count": 1}))
    events += flow(offset + 9, at + 320, begin + 500, HCCL, 0)
    return events


def overlap(at: float = 0) -> list[Event]:
    """CANN's analysis of the device's side."""
    parts = {
        "Computing": [(start, end) for _, _, start, end in KERNELS],
        "Communication": [(500, 700)],
        "Communication(Not Overlapped)": [(560, 700)],
        "Free": FREE,
    }
    return [
        complete(name, OVERLAP, tid, at + start, at + end)
        for tid, (name, spans) in enumerate(parts.items())
        for start, end in spans
    ]


def one_step() -> list[Event]:
    """The whole trace of one step."""
    return [*metadata(), *host(), *device(), *overlap()]


def write_trace(folder: Path, events: Iterable[Event]) -> Path:
    """`trace_view.json` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trace_view.json"
    path.write_text(json.dumps(list(events)))
    return path


def write_rank(folder: Path, rank: int, files: Mapping[str, str]) -> Path:
    """A rank's folder with these files in its output."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (folder / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank}))
    for name, text in files.items():
        (output / name).write_text(text)
    return folder
