"""Traces that are cut, empty or incomplete: what is left out is named, nothing is made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from autotune.analyze.kineto.reader import read_trace
from autotune.analyze.profile import Profile
from autotune.errors import UserError
from tests.analyze.kineto_traces import BACKWARD, Trace, missing


def job() -> Trace:
    """Six steps of 20 operators, each with a kernel, as Kineto orders them in a file."""
    trace = Trace(header={"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100"}]})
    for step in range(6):
        trace.step(step, 1000 * step, 1000 * step + 900)
        for place in range(20):
            at = 1000 * step + 40 * place
            trace.op("aten::view", at, at + 1).op("aten::add", at + 2, at + 30)
    for step in range(6):
        for place in range(20):
            at = 1000 * step + 40 * place
            trace.kernel("add_kernel", at + 10, at + 35, launched=at + 3)
    return trace


def read(folder: Path, content: str | bytes, *, name: str = "trace.json") -> Profile:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_trace(path)


def test_a_cut_trace_gives_the_steps_of_which_nothing_is_lost(tmp_path: Path) -> None:
    whole = job().text()
    expected = read(tmp_path, whole).steps
    assert [step.computing_us for step in expected] == [500] * 6
    seen = set()
    for length in range(100, len(whole) - 100, len(whole) // 60):
        profile = read(tmp_path, whole[:length])
        assert not profile.complete
        assert profile.cut == ("trace.json",)
        assert profile.device == "cuda" or not profile.steps
        assert profile.steps == expected[: len(profile.steps)]
        assert len(profile.steps) == 6 or "the file ends" in missing(profile)
        seen.add(len(profile.steps))
    assert seen >= {0, 1, 2, 3, 4, 5}


def test_a_cut_trace_of_the_host_drops_the_step_that_was_being_written(tmp_path: Path) -> None:
    trace = Trace()
    for step in range(4):
        trace.step(step, 1000 * step, 1000 * step + 900)
        for place in range(10):
            trace.op("aten::add", 1000 * step + 50 * place, 1000 * step + 50 * place + 20)
    whole = trace.text()
    profile = read(tmp_path, whole[: whole.index("ProfilerStep#3") + 400])
    assert [(step.step, step.computing_us) for step in profile.steps] == [
        (0, 200),
        (1, 200),
        (2, 200),
    ]
    assert "steps 3: the file ends" in missing(profile)


def test_a_cut_trace_that_lost_the_communication_threads(tmp_path: Path) -> None:
    """Kineto writes one thread after the other: the ranges of gloo's threads may be the last."""
    trace = Trace().step(0, 0, 100).op("c10d::allreduce_", 10, 12).step(1, 100, 200)
    trace.op("aten::mm", 110, 120).range("gloo:all_reduce", 12, 80, tid=9)
    whole = trace.text()
    assert read(tmp_path, whole).steps[0].communication_us == 70
    assert read(tmp_path, whole[: whole.index("gloo:")]).steps == ()


def test_a_cut_gzip_file(tmp_path: Path) -> None:
    packed = gzip.compress(job().text().encode())
    profile = read(tmp_path, packed[: len(packed) * 3 // 4], name="rank5.pt.trace.json.gz")
    assert not profile.complete
    assert profile.rank == 5
    assert profile.operators


@pytest.mark.parametrize("content", ["[]", '{"traceEvents": []}', '{"traceEvents": [{}, 1, null]}'])
def test_a_trace_without_events(tmp_path: Path, content: str) -> None:
    profile = read(tmp_path, content)
    assert profile.steps == profile.operators == profile.collectives == profile.gaps == ()
    assert profile.memory is None
    assert missing(profile) == "operators, kernels and ranges: the trace holds none"


def test_steps_without_any_operator(tmp_path: Path) -> None:
    profile = Trace().step(1, 0, 10).step(2, 10, 30).read(tmp_path)
    assert [(step.total_us, step.free_us) for step in profile.steps] == [(10, 10), (20, 20)]
    assert [step.computing_us for step in profile.steps] == [0, 0]
    assert "host operators" in missing(profile)


def test_launches_without_kernels_are_not_taken_for_a_cpus_work(tmp_path: Path) -> None:
    """What CUPTI leaves behind where it may not be used."""
    trace = Trace().step(1, 0, 10).op("aten::mm", 1, 5)
    trace.span("cuda_runtime", "cudaLaunchKernel", 2, 3, 100, correlation=1)
    profile = trace.read(tmp_path)
    assert profile.device == "cuda"
    assert profile.steps == ()
    assert [operator.name for operator in profile.operators] == ["aten::mm"]
    assert "no device work was recorded" in missing(profile)


def test_kernels_without_a_host(tmp_path: Path) -> None:
    profile = Trace().kernel("mm", 10, 30).kernel("mm", 40, 60).read(tmp_path)
    (step,) = profile.steps
    assert (step.total_us, step.computing_us, step.free_us) == (50, 40, 10)
    assert "launches of 2 device tasks" in missing(profile)


BROKEN: tuple[dict[str, Any], ...] = (
    {"ts": None},
    {"ts": "N/A"},
    {"ts": float("nan")},
    {"dur": float("inf")},
    {"dur": -5},
    {"dur": None},
    {"args": None},
    {"args": [1, 2]},
    {"args": {"correlation": "x", "External id": None}},
    {"name": None},
    {"name": ["a"]},
    {"cat": None},
    {"cat": {"a": 1}},
    {"tid": None},
    {"pid": [3]},
    {"ph": None},
)


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_events_with_broken_fields_do_not_break_the_others(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    trace = job().memory(20, 100, 100, address=1, device=1)
    for event in list(trace.events[-41:]):
        trace.events.append(event | change)
    profile = trace.read(tmp_path)
    assert len(profile.steps) == 6
    assert profile.steps[0].computing_us == 500
    assert all(step.phases_us for step in profile.steps)


def test_broken_arguments_of_collectives_and_memory(tmp_path: Path) -> None:
    trace = Trace().step(1, 0, 100).op("aten::a", 0, 10)
    messages: list[dict[str, Any]] = [
        {"In msg nelems": "many", "Out msg nelems": None, "dtype": 3},
        {"In msg nelems": -1, "dtype": "Float128", "Process Group Name": None},
        {"Collective name": ["x"], "Process Group Name": {"a": 1}},
    ]
    for place, message in enumerate(messages):
        trace.kernel("ncclKernel_AllReduce", 10 * place, 10 * place + 5, launched=1, **message)
    trace.memory(5, 10, 10, address=1, device=1)
    for args in ({"Bytes": "x"}, {"Bytes": None}, {"Bytes": 5}, None, [1]):
        trace.events.append({"ph": "i", "name": "[memory]", "ts": 7, "args": args})
    profile = trace.read(tmp_path)
    assert [collective.size_bytes for collective in profile.collectives] == [None] * 2
    assert "events: their time, duration or size is no number" in missing(profile)


def test_overlapping_calls_of_one_thread_do_not_make_negative_times(tmp_path: Path) -> None:
    trace = Trace().op("a", 0, 10).op("b", 5, 15).op("c", 12, 20).op("d", 5, 5)
    assert all((each.self_us or 0) >= 0 for each in trace.read(tmp_path).operators)


def test_what_is_no_trace(tmp_path: Path) -> None:
    for content in ("", "a,b\n1,2\n", json.dumps({"rank": 0}), json.dumps([{"time": 1}])):
        with pytest.raises(UserError, match="is no trace"):
            read(tmp_path, content)
    with pytest.raises(UserError, match="cannot read"):
        read_trace(tmp_path / "nowhere.json")


def test_the_backward_thread_counts_for_a_cut_trace(tmp_path: Path) -> None:
    trace = Trace(header={"schemaVersion": 1, "deviceProperties": [{"id": 0}]})
    for step in range(2):
        trace.step(step, 100 * step, 100 * step + 90)
        trace.op("aten::mm", 100 * step + 1, 100 * step + 5)
        trace.op("MmBackward0", 100 * step + 10, 100 * step + 15, tid=BACKWARD)
    for step in range(2):
        at = 100 * step
        trace.kernel("mm", at + 3, at + 8, launched=at + 2)
        trace.kernel("mm_bw", at + 12, at + 30, launched=at + 11, thread=BACKWARD)
    whole = trace.text()
    assert [s.step for s in read(tmp_path, whole[: whole.rindex('"mm_bw"')]).steps] == [0]
