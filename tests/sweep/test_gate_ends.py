"""How sweeps end behind the memory gate, and how it finds out that it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune.ports import TrialRequest
from autotune.report.gate import GateSummary
from autotune.space.point import Point
from autotune.sweep.loop import SweepEnd
from launch.simulated import SimulatedTrial

from .conftest import LIMIT, Bench
from .gated_case import SPACE, gated, launched, make_space, peak_of, runs, skipped, time_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return gated(tmp_path)


BATCHES = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20]


def steep(point: Point, request: TrialRequest) -> SimulatedTrial:
    return runs(1 / point["batch"], 240 * point["batch"])


@pytest.mark.parametrize("sampler", ["guided", "random", "tpe"])
def test_when_all_that_is_left_is_refused_the_sweep_ends_and_says_so(
    bench: Bench, sampler: str
) -> None:
    """Every point that fits has been tried by then; a few others too, to check the gate."""
    hinted = {"choices": BATCHES, "ordered": True, "memory": "increases"}
    space = bench.space = make_space({"batch": hinted})
    assert bench.run(steep, sampler=sampler, max_trials=1000) is SweepEnd.SPACE_USED
    assert {1, 2, 3, 4} <= {r.parameters["batch"] for r in launched(bench)}
    checks = [r for r in launched(bench) if r.was_checked]
    assert len(checks) >= 3
    assert len(launched(bench)) < len(space.points)
    assert any("memory.gate=false" in line for line in bench.listener.said_lines)
    before = bench.paths.journal.read_bytes()
    assert bench.run(steep, sampler=sampler, max_trials=1000) is SweepEnd.SPACE_USED
    assert bench.paths.journal.read_bytes() == before
    bench.gate = False
    assert bench.run(steep, sampler=sampler, max_trials=1000) is SweepEnd.SPACE_USED
    assert {r.parameters for r in launched(bench)} == set(space.points)


def test_several_at_once_end_too(bench: Bench) -> None:
    hinted = {"choices": BATCHES, "ordered": True, "memory": "increases"}
    bench.space = make_space({"batch": hinted})
    assert bench.run(steep, sampler="guided", slots=3, max_trials=1000) is SweepEnd.SPACE_USED
    assert len({r.parameters for r in launched(bench)}) == len(launched(bench))


UNSEEN: dict[str, Any] = {
    "batch": {"choices": [1, 2, 4, 8, 16], "ordered": True},
    "a": {"choices": ["a0", "a1", "a2"]},
    "b": {"choices": ["b0", "b1"]},
}


@pytest.mark.parametrize("sampler", ["guided", "random"])
def test_a_gate_that_is_wrong_corrects_itself(bench: Bench, sampler: str) -> None:
    """While the first runs last somebody else holds memory: large batches seem not to fit.

    Nothing but runs of refused points can show that this is over.
    """
    space = bench.space = make_space(UNSEEN)
    count = 0

    def at_first_crowded(point: Point, request: TrialRequest) -> SimulatedTrial:
        nonlocal count
        count += 1
        crowded = count <= 10 and point["batch"] >= 4
        return runs(1 / point["batch"], 1300 if crowded else 300)

    bench.run(at_first_crowded, sampler=sampler, max_trials=1000)
    assert any(
        r.gate is not None and (r.gate.passed_over or r in skipped(bench)) for r in bench.records
    )
    summary = GateSummary.of(bench.records)
    assert summary.right < summary.checked
    assert {r.parameters for r in launched(bench)} == set(space.points)
    assert {r.attempt for r in launched(bench)} == {1}  # a refusal is no attempt


@pytest.mark.parametrize("sampler", ["guided", "random"])
def test_a_wrong_hint_is_found_out(bench: Bench, sampler: str) -> None:
    """The space file says that a larger chunk needs more; here it needs less."""
    chunk = {"choices": [1, 2, 4, 8], "ordered": True, "memory": "increases"}
    space = bench.space = make_space(
        {"chunk": chunk, "a": UNSEEN["a"], "b": UNSEEN["b"]}, baseline={"chunk": 8}
    )

    def inverted(point: Point, request: TrialRequest) -> SimulatedTrial:
        return runs(1.0, 2000 if point["chunk"] < 8 else 500)

    bench.run(inverted, sampler=sampler, max_trials=1000)
    fitting = {p for p in space.points if p["chunk"] == 8}
    assert fitting <= {r.parameters for r in launched(bench)}


def test_a_limit_that_nothing_fits_under_costs_few_launches(
    bench: Bench,
) -> None:
    def too_large(point: Point, request: TrialRequest) -> SimulatedTrial:
        return runs(time_of(point), peak_of(point) + LIMIT)

    assert bench.run(too_large, sampler="guided", max_trials=1000) is SweepEnd.SPACE_USED
    assert len(launched(bench)) < 0.4 * len(SPACE.points)
