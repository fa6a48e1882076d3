"""Small Kineto traces by hand. Times are microseconds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.analyze.kineto.reader import read_trace
from autotune.analyze.profile import Profile

MAIN = 100
BACKWARD = 101


@dataclass
class Trace:
    """A trace in the making."""

    events: list[dict[str, Any]] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=lambda: {"schemaVersion": 1})

    def span(
        self, category: str, name: str, start: float, end: float, tid: object, **args: Any
    ) -> Trace:
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start}
            | {"dur": end - start, "args": {"External id": len(self.events), **args}}
        )
        return self

    def op(self, name: str, start: float, end: float, tid: int = MAIN, **args: Any) -> Trace:
        return self.span("cpu_op", name, start, end, tid, **args)

    def range(self, name: str, start: float, end: float, tid: int = MAIN, **args: Any) -> Trace:
        return self.span("user_annotation", name, start, end, tid, **args)

    def step(self, number: int, start: float, end: float) -> Trace:
        return self.range(f"ProfilerStep#{number}", start, end)

    def kernel(
        self,
        name: str,
        start: float,
        end: float,
        *,
        launched: float | None = None,
        thread: int = MAIN,
        stream: int = 7,
        category: str = "kernel",
        **args: Any,
    ) -> Trace:
        """A device task; `launched` is when its launch began on the host."""
        correlation = len(self.events)
        if launched is not None:
            call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
            self.span("cuda_runtime", call, launched, launched + 1, thread, correlation=correlation)
        return self.span(category, name, start, end, stream, correlation=correlation, **args)

    def memory(
        self, at: float, size: int, total: int, address: int, *, tid: int = MAIN, device: int = 0
    ) -> Trace:
        where = {"Device Type": device, "Device Id": 0 if device else -1}
        sizes = {"Bytes": size, "Addr": address, "Total Allocated": total, "Total Reserved": 0}
        self.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1}
            | {"tid": tid, "ts": at, "args": where | sizes}
        )
        return self

    def text(self) -> str:
        end = {"ph": "i", "name": "Record Window End", "ts": 0, "s": "g", "pid": "", "tid": ""}
        return json.dumps({**self.header, "traceEvents": [*self.events, end]})

    def read(self, folder: Path) -> Profile:
        path = folder / "trace.json"
        path.write_text(self.text())
        return read_trace(path)


def missing(profile: Profile) -> str:
    return "\n".join(f"{each.what}: {each.why}" for each in profile.missing)
