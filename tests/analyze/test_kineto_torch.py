"""Traces that the installed torch writes, against what torch itself says of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.analyze.kineto.reader import read_trace
from autotune.analyze.profile import Profile

pytest.importorskip("torch")

TRAINER = Path(__file__).with_name("torch_trainer.py")


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.analyze.torch_trainer import train

    folder = tmp_path_factory.mktemp("one")
    train(folder, ranges=False)
    return folder


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Profile]:
    folder = tmp_path_factory.mktemp("two")
    processes = []
    for rank in ("0", "1"):
        (folder / rank).mkdir()
        processes.append(
            subprocess.Popen(
                [sys.executable, str(TRAINER), rank, str(folder / "store"), str(folder / rank)],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    return [read_trace(folder / rank / "trace.json") for rank in ("0", "1")]


def test_operators_are_as_in_torchs_own_table(one_rank: Path) -> None:
    torchs = {row[0]: row[1:] for row in json.loads((one_rank / "averages.json").read_text())}
    operators = read_trace(one_rank / "trace.json").operators
    assert {"aten::addmm", "aten::_foreach_norm"} <= {operator.name for operator in operators}
    for operator in operators:
        count, total_us, self_us = torchs[operator.name]
        assert operator.count == count
        assert operator.total_us == pytest.approx(total_us, abs=0.1)
        assert operator.self_us == pytest.approx(self_us, abs=0.1)


def test_steps_and_phases_of_a_plain_loop(one_rank: Path) -> None:
    profile = read_trace(one_rank / "trace.json")
    torchs = {row[0]: row[1:] for row in json.loads((one_rank / "averages.json").read_text())}
    assert (profile.device, profile.rank, profile.complete) == ("cpu", None, True)
    assert [step.step for step in profile.steps] == [2, 3, 4]
    phases = [step.phases_us or {} for step in profile.steps]
    total = torchs["ProfilerStep*"][1]
    assert sum(step.total_us for step in profile.steps) == pytest.approx(total, abs=0.1)
    for step, each in zip(profile.steps, phases, strict=True):
        assert sum(each.values()) == pytest.approx(step.total_us, abs=0.01)
        assert each["communication"] == step.communication_us == 0
        assert each["forward_backward"] > 0
        assert each["post_processing"] > 0
    loader = torchs["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"][1]
    assert sum(each["data_loading"] for each in phases) == pytest.approx(loader, abs=0.1)
    optimizer = torchs["Optimizer.step#AdamW.step"][1]
    assert sum(each["optimizer"] for each in phases) == pytest.approx(optimizer, abs=0.1)


def test_memory_of_a_plain_loop(one_rank: Path) -> None:
    trace = json.loads((one_rank / "trace.json").read_text())["traceEvents"]
    totals = [e["args"]["Total Allocated"] for e in trace if e["name"] == "[memory]"]
    memory = read_trace(one_rank / "trace.json").memory
    assert memory is not None
    assert memory.peaks_bytes == {"cpu": max(totals)}
    # Everything live at the peak is named, down to the byte.
    assert sum(holder.size_bytes for holder in memory.holders) == max(totals)
    gradients = [h for h in memory.holders if h.size_bytes == 4 * 192 * 192 and h.by == "aten::mm"]
    assert len(gradients) == 2


@pytest.mark.ranks
def test_two_ranks_over_gloo(two_ranks: list[Profile]) -> None:
    assert [profile.rank for profile in two_ranks] == [0, 1]
    for profile in two_ranks:
        assert profile.device == "cpu"
        (operation,) = {each.operation for each in profile.collectives}
        assert operation == "gloo:all_reduce"
        inside = [each for each in profile.collectives if each.step is not None]
        # Each step reduces all gradients in one bucket, and the loss.
        parameters = 2 * (192 * 192 + 192)
        assert sum(each.count for each in inside) in (5, 6)
        assert max(each.size_bytes or 0 for each in inside) == pytest.approx(
            4 * (parameters + 1), abs=8
        )
        for step in profile.steps:
            assert step.communication_us > 0
            assert (step.phases_us or {})["communication"] > 0


@pytest.mark.ranks
def test_the_trainers_own_ranges_are_the_phases(two_ranks: list[Profile]) -> None:
    for profile in two_ranks:
        trace = json.loads(profile.source.read_text())["traceEvents"]
        spans = [e for e in trace if e.get("cat") == "user_annotation"]
        steps = sorted((e["ts"], e["dur"]) for e in spans if e["name"].startswith("ProfilerStep"))
        for step, (start_us, length) in zip(profile.steps, steps, strict=True):
            inside = [e for e in spans if start_us <= e["ts"] < start_us + length]
            marked = {e["name"]: e["dur"] for e in inside}
            phases = step.phases_us or {}
            assert phases["data_loading"] == pytest.approx(marked["data_loading"], abs=0.01)
            # What of the optimizer and of clipping is not waiting for the other rank.
            for name in ("optimizer", "post_processing"):
                assert phases[name] <= marked[name] + 0.01
            both = phases["forward_backward"] + phases["communication"]
            assert both >= marked["forward_backward"] + marked["communication"] - 0.01
