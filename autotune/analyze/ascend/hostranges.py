"""The ranges on the host that tell a step's phases apart, by the names torch gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from autotune.analyze.ascend.timeline import Host, HostOperator, HostStep
from autotune.analyze.ascend.values import duration, moment
from autotune.analyze.intervals import Interval, union

_STEP = re.compile(r"ProfilerStep#(\d+)")
# torch.utils.data names the range of a loader's `__next__` so, and torch.optim that of `step`.
_LOADING = re.compile(r"enumerate\(DataLoader\)#.*")
_OPTIMIZER = re.compile(r"Optimizer\.step#.*")
_BACKWARD = re.compile(r"autograd::engine::evaluate_function.*")


class HostCollector:
    """Takes the host's operators one by one: as events, or with their times."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._steps: set[HostStep] = set()
        self._loading: list[Interval] = []
        self._backward: list[Interval] = []
        self._optimizer: list[Interval] = []
        self._operators: dict[str, list[int]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One complete event of a trace; what has no name or no times is passed over."""
        start, length = moment(event.get("ts")), duration(event.get("dur"))
        name = event.get("name")
        if isinstance(name, str) and start is not None and length is not None:
            self.add(name, start, start + length)

    def add(self, name: str, start: int, end: int) -> None:
        """One operator, from start to end in nanoseconds."""
        if step := _STEP.fullmatch(name):
            self.add_step(int(step[1]), start, end)
            return
        self._first = start if self._first is None else min(self._first, start)
        sums = self._operators.setdefault(name, [0, 0, 0])
        sums[0] += 1
        sums[1] += end - start
        sums[2] = max(sums[2], end - start)
        if name.startswith(("autograd", "enumerate", "Optimizer")):
            self._add_range(name, start, end)

    def add_step(self, number: int, start: int, end: int) -> None:
        """One step as the host ran it."""
        self._steps.add(HostStep(number, start, end))

    def _add_range(self, name: str, start: int, end: int) -> None:
        if _BACKWARD.fullmatch(name):
            self._backward.append((start, end))
        elif _LOADING.fullmatch(name):
            self._loading.append((start, end))
        elif _OPTIMIZER.fullmatch(name):
            self._optimizer.append((start, end))

    def finish(self) -> Host:
        """Everything that was taken."""
        operators = (HostOperator(name, *sums) for name, sums in self._operators.items())
        return Host(
            first=self._first,
            steps=tuple(sorted(self._steps, key=lambda step: step.start)),
            loading=union(self._loading),
            backward=union(self._backward),
            optimizer=union(self._optimizer),
            operators=tuple(sorted(operators, key=lambda operator: -operator.total)),
        )
