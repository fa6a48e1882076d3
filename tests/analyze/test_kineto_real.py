"""Real traces of public projects, against what pandas says of their raw events."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autotune.analyze.kineto.reader import read_trace
from autotune.analyze.profile import Profile
from autotune.measure.records import PHASES

FOLDER = Path(__file__).parents[3] / "shared/data/profiles/kineto"
NO_WORKERS = "resnet50_num_workers_0.worker0.1623143089861.pt.trace.json.gz"
FOUR_WORKERS = "resnet50_num_workers_4.worker0.1623212756351.pt.trace.json.gz"
NCCL = "nccl_data.json.gz"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real profiles are not here")


@cache
def profile(name: str) -> Profile:
    return read_trace(FOLDER / name)


@cache
def frame(name: str) -> pd.DataFrame:
    """A row an event with a duration; `kind` as newer versions call it, `corr` its launch."""
    events = json.loads(gzip.decompress((FOLDER / name).read_bytes()))["traceEvents"]
    rows: list[dict[str, Any]] = [event for event in events if event.get("ph") == "X"]
    table = pd.DataFrame(rows)
    # Whole nanoseconds from the trace's start: floats of the time since the epoch would drift.
    table["ts"] = [ts * 1000 if isinstance(ts, int) else round(ts * 1000) for ts in table["ts"]]
    table["ts"] -= table["ts"].min()
    table["end"] = table["ts"] + (table["dur"].astype(float) * 1000).round().astype("int64")
    table["dur"] = (table["end"] - table["ts"]) / 1000
    table["corr"] = [args.get("correlation", -1) for args in table["args"]]
    return table


def covered(spans: pd.DataFrame) -> float:
    """Microseconds under any of the spans: a sweep over their borders."""
    borders = pd.concat(
        [
            pd.DataFrame({"at": spans["ts"], "opens": 1}),
            pd.DataFrame({"at": spans["end"], "opens": -1}),
        ]
    ).sort_values(["at", "opens"], ascending=[True, False])
    is_open = borders["opens"].cumsum() > 0
    return float((borders["at"].shift(-1) - borders["at"])[is_open].sum()) / 1000


def device(name: str) -> pd.DataFrame:
    table = frame(name)
    kinds = table["cat"].str.lower().str.removeprefix("gpu_")
    return table[kinds.isin(["kernel", "memcpy", "memset"])]


def launched_within(name: str, start: int, end: int) -> pd.DataFrame:
    table = frame(name)
    calls = table[table["cat"].isin(["Runtime", "cuda_runtime"]) & table["ts"].between(start, end)]
    tasks = device(name)
    return tasks[tasks["corr"].isin(calls["corr"])]


@pytest.mark.parametrize("name", [NO_WORKERS, FOUR_WORKERS])
def test_resnet_computes_what_its_kernels_cover(name: str) -> None:
    steps = profile(name).steps
    assert [step.step for step in steps] == [5, 6, 7, 8, 9, 10]
    marks = frame(name)
    marks = marks[marks["name"].str.startswith("ProfilerStep#")].sort_values("ts")
    for step, mark in zip(steps, marks.itertuples(), strict=True):
        own = launched_within(name, mark.ts, mark.end)
        assert step.computing_us == pytest.approx(covered(own), abs=0.001)
    assert sum(s.computing_us for s in steps) == pytest.approx(covered(device(name)), abs=0.001)


@pytest.mark.parametrize("name", [NO_WORKERS, FOUR_WORKERS])
def test_resnets_optimizer_is_the_device_time_that_it_launched(name: str) -> None:
    table = frame(name)
    ranges = table[table["name"] == "Optimizer.step#SGD.step"].sort_values("ts")
    for step, mark in zip(profile(name).steps, ranges.itertuples(), strict=True):
        assert step.phases_us is not None
        expected = covered(launched_within(name, mark.ts, mark.end))
        assert step.phases_us["optimizer"] == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("name", [NO_WORKERS, FOUR_WORKERS, NCCL])
def test_phases_add_up_to_the_step_and_steps_to_the_trace(name: str) -> None:
    steps = profile(name).steps
    for step in steps:
        assert step.phases_us is not None
        assert tuple(step.phases_us) == PHASES
        assert sum(step.phases_us.values()) == pytest.approx(step.total_us, abs=0.001)
        parts = step.preparing_us + step.computing_us + step.not_overlapped_us + step.free_us
        assert parts == pytest.approx(step.total_us, abs=0.001)
    table = frame(name)
    marks = table[(table["name"].str.startswith("ProfilerStep#")) & (table["pid"] != 0)]
    length = (max(marks["end"].max(), device(name)["end"].max()) - marks["ts"].min()) / 1000
    between = marks.sort_values("ts")
    pauses = (between["ts"].shift(-1) - between["end"]).sum() / 1000
    assert sum(s.total_us for s in steps) == pytest.approx(length, abs=pauses + 0.01)


def test_without_loader_workers_data_loading_is_the_bottleneck() -> None:
    """Not with four: then the device waits for launches."""

    def waiting(name: str) -> tuple[float, float]:
        phases = [step.phases_us or {} for step in profile(name).steps]
        return (
            sum(p["data_loading"] for p in phases) / len(phases),
            sum(p["scheduling"] for p in phases) / len(phases),
        )

    loading, scheduling = waiting(NO_WORKERS)
    assert loading > 3 * scheduling
    assert loading > 50_000
    # Never more than the host spent in the loader, which the first step does whole.
    table = frame(NO_WORKERS)
    loader = table[table["name"].str.startswith("enumerate(DataLoader)")]
    assert loading <= loader["dur"].mean()
    few, others = waiting(FOUR_WORKERS)
    assert few < 2_000
    assert others > 10 * few


def test_nccl_communication_and_what_hid_it() -> None:
    tasks = device(NCCL)
    is_nccl = tasks["name"].str.contains("nccl")
    marks = frame(NCCL)
    marks = marks[marks["name"].str.startswith("ProfilerStep#") & (marks["pid"] != 0)]
    for step, mark in zip(profile(NCCL).steps, marks.sort_values("ts").itertuples(), strict=True):
        own = tasks["ts"].between(mark.ts, mark.end)
        communication = covered(tasks[own & is_nccl])
        kernels = tasks[own & ~is_nccl & (tasks["cat"] == "kernel")]
        busy, compute = covered(tasks[own]), covered(kernels)
        assert step.communication_us == pytest.approx(communication, abs=0.001)
        # Copies compute only where they are alone, so kernels and communication decide.
        both = covered(pd.concat([kernels, tasks[own & is_nccl]]))
        assert step.not_overlapped_us == pytest.approx(both - compute, abs=0.001)
        assert step.computing_us == pytest.approx(busy - (both - compute), abs=0.001)


def test_nccl_collectives_by_operation() -> None:
    tasks = device(NCCL)
    nccl = tasks[tasks["name"].str.contains("nccl")]
    reduces = nccl[nccl["name"].str.contains("AllReduce")]
    found = profile(NCCL).collectives
    mine = [each for each in found if each.operation == "nccl:allreduce"]
    assert {each.group for each in found} == {"0 (default_pg)"}
    assert sum(each.count for each in found) == len(nccl) == 21
    assert sum(e.elapsed_us for e in mine) == pytest.approx(reduces["dur"].sum(), abs=0.001)
    # ResNet-50 has 25557032 parameters; DDP reduces the gradients of all of them each step.
    assert [each.size_bytes for each in mine] == [4 * 25_557_032] * 3
    assert profile(NCCL).rank == 0


@pytest.mark.parametrize("name", [NO_WORKERS, NCCL])
def test_operators_add_up_as_in_pandas(name: str) -> None:
    table = frame(name)
    host = table[table["cat"].isin(["cpu_op", "Operator"])]
    tasks = device(name)
    for where, rows in (("host", host), ("cuda", tasks)):
        found = {each.name: each for each in profile(name).operators if each.where == where}
        for operator in found.values():
            own = rows[rows["name"] == operator.name]
            # Calls inside one another count once, as long as the outer one took.
            total = sum(covered(each) for _, each in own.groupby("tid"))
            assert operator.total_us == pytest.approx(total, abs=0.001)
            assert operator.longest_us == pytest.approx(own["dur"].max(), abs=0.001)
            if total == pytest.approx(own["dur"].sum(), abs=0.0005):
                assert operator.count == len(own)
        ranges = rows["name"].str.startswith(("ProfilerStep#", "enumerate(", "Optimizer."))
        assert set(found) == set(rows[~ranges]["name"])


def test_own_times_add_up_to_the_time_in_operators() -> None:
    """On each thread, own times are a partition of what operators cover."""
    table = frame(NCCL)
    host = table[table["cat"] == "cpu_op"]
    expected = sum(covered(rows) for _, rows in host.groupby("tid"))
    own = sum(each.self_us or 0 for each in profile(NCCL).operators if each.where == "host")
    assert own == pytest.approx(expected, abs=0.001)


def test_gaps_of_resnet_are_the_loaders() -> None:
    gaps = sorted(profile(NO_WORKERS).gaps, key=lambda gap: -gap.duration_us)[:6]
    assert sorted(gap.step or 0 for gap in gaps) == [5, 6, 7, 8, 9, 10]
    assert all(gap.after.startswith("Memcpy HtoD") for gap in gaps)
    assert min(gap.duration_us for gap in gaps) > 40_000
