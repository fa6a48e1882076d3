"""Where a step's time goes.

Ranges are exclusive: while an inner range runs, the outer one stands still. What lies
in no range is scheduling: the host's own time between the ranges. On cuda and npu the
marks are events on the current stream, so `communication` is the part of collectives
that computing did not hide.

While a profiler runs the ranges are in its trace too, under their names and one inside the
other; a range inside another is to be taken out of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

from torch.profiler import record_function

from launch.reference.device import Device

Phase = Literal["data_loading", "forward_backward", "optimizer", "post_processing", "communication"]
PHASES: tuple[Phase, ...] = (
    "data_loading",
    "forward_backward",
    "optimizer",
    "post_processing",
    "communication",
)


class PhaseTimer:
    """Times the ranges of one step after another.

    annotate: whether the ranges are also written to the trace of a running profiler.
    """

    def __init__(self, device: Device) -> None:
        self.annotate = False
        self._device = device
        self._open: list[Phase] = []
        self._ranges: list[tuple[Phase, Any, Any]] = []
        self._mark: Any = None
        self._step_start = 0.0

    def begin_step(self) -> None:
        """Starts a step's clock."""
        self._ranges.clear()
        self._step_start = time.perf_counter()

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """A range; the range around it, if any, stands still meanwhile."""
        self._switch()
        self._open.append(name)
        try:
            with record_function(name) if self.annotate else nullcontext():
                yield
        finally:
            self._switch()
            self._open.pop()

    def _switch(self) -> None:
        mark = self._device.mark()
        if self._open:
            self._ranges.append((self._open[-1], self._mark, mark))
        self._mark = mark

    def end_step(self) -> tuple[float, dict[str, float]]:
        """Waits for the device; the step's seconds and the seconds of each of its phases."""
        self._device.synchronize()
        total = time.perf_counter() - self._step_start
        phases: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        for name, start, end in self._ranges:
            phases[name] += self._device.seconds(start, end)
        phases["scheduling"] = max(0.0, total - sum(phases.values()))
        return total, phases
