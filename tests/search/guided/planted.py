"""Spaces and functions that tests plant, and studies of them as a sweep keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.guided.belief import Knowledge
from autotune.search.point_sampler import PointSampler
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.storage import OptunaStore, slowest
from autotune.study.trial_record import TrialRecord

Measure = Callable[[Point], Outcome]


def space_of(parameters: dict[str, Any], *rules: str) -> LegalSpace:
    """The space of these parameters and rules; the baseline is the first choices."""
    constraints = [{"rule": rule} for rule in rules]
    definition = SpaceDefinition.parse({"parameters": parameters, "constraints": constraints}, {})
    return LegalSpace.build(definition)


def ladder(count: int, **rest: Any) -> dict[str, Any]:
    """An ordered parameter of so many powers of two."""
    return {"choices": [2**n for n in range(count)], "ordered": True, **rest}


def kinds(count: int, **rest: Any) -> dict[str, Any]:
    """An unordered parameter of so many names."""
    return {"choices": [f"kind{n}" for n in range(count)], **rest}


def ok(seconds: float, peak: int | None = None) -> Outcome:
    return Outcome(Status.OK, "", batch_time_s=seconds, peak_memory_bytes=peak)


def stopped(seconds: float) -> Outcome:
    return Outcome(Status.STOPPED, "cannot win", batch_time_s=seconds)


def over_limit(seconds: float | None, peak: int) -> Outcome:
    return Outcome(Status.OVER_LIMIT, "too much", batch_time_s=seconds, peak_memory_bytes=peak)


def oom() -> Outcome:
    return Outcome(Status.OOM, "out of memory")


def failed() -> Outcome:
    return Outcome(Status.FAILED, "exit code 1")


def guided(space: LegalSpace, seed: int = 0, limit_bytes: float | None = None) -> PointSampler:
    """A new sampler, which was never asked before."""
    return make_sampler("guided", Encoding(space), seed, Knowledge(limit_bytes))


class Sweep:
    """A study in memory, asked and told as a sweep does it."""

    def __init__(self, space: LegalSpace, measure: Measure, limit_bytes: int | None = None) -> None:
        self.space, self.measure = space, measure
        self.store = OptunaStore.in_memory(Encoding(space), limit_bytes)
        self.records: list[TrialRecord] = []

    def ask(self, sampler: PointSampler) -> tuple[int, Point]:
        return self.store.ask(sampler)

    def tell(self, number: int, point: Point) -> None:
        record = TrialRecord(number, point, self.measure(point), 1.0, 0.0, 1.0, 1, "")
        self.records.append(record)
        self.store.tell(record, slowest(self.records))

    def run(self, sampler: PointSampler, trials: int) -> list[Point]:
        """Proposes and measures so many points, one after the other."""
        return [self.step(sampler) for _ in range(trials)]

    def step(self, sampler: PointSampler) -> Point:
        number, point = self.ask(sampler)
        self.tell(number, point)
        return point


# 240 points, of which about two in five do not run.
LAYOUTS = space_of(
    {
        "micro_batch_size": ladder(4),
        "tp": ladder(3),
        "kind": kinds(3),
        "depth": ladder(3, when="kind == 'kind1'"),
        "chunk": ladder(4),
    }
)
LAYOUTS_LIMIT = 100


def layout_seconds(point: Point) -> float:
    """Large micro-batches and little parallelism are fast, so the fastest points do not fit."""
    penalty = {"kind0": 1.0, "kind1": 0.8, "kind2": 0.9}[point["kind"]]
    bend = 1 + 0.1 * abs(point.get("depth", 1) - 2) + 0.05 * abs(point["chunk"] - 4)
    return penalty * bend * (1 + 1 / point["micro_batch_size"]) * (1 + 0.15 * (point["tp"] - 1))


def layout_peak(point: Point) -> int:
    """Bytes."""
    stored = 30 * point["micro_batch_size"] / point["tp"] ** 0.7
    return int(20 + stored * (1.2 if point["kind"] == "kind1" else 1.0))


def layout(point: Point) -> Outcome:
    """One of every kind of ending: ok, stopped, over the limit with a time or not, OOM, failed."""
    seconds, peak = layout_seconds(point), layout_peak(point)
    if point["kind"] == "kind2" and point["tp"] == 2:
        return failed()
    if peak > 1.5 * LAYOUTS_LIMIT:
        return oom()
    if peak > LAYOUTS_LIMIT:
        return over_limit(seconds if point["chunk"] > 1 else None, peak)
    return stopped(1.05 * seconds) if seconds > 2.2 else ok(seconds, peak)
