"""Calls of torch_npu's profiler, on a stand-in: torch_npu itself needs CANN."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from launch.rank.profile_options import ProfileOptions
from launch.rank.profiling import StepProfiler
from launch.rank.recorder import Recorder

SOURCES = "TORCH_NPU_SOURCES"

Action = Enum("Action", ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"])
FULL = ProfileOptions(
    steps=2,
    warmup_steps=1,
    ranks=(-1,),
    with_stack=True,
    profiler_level="Level1",
    aic_metrics="PipeUtilization",
    export_type="Db",
    gc_detect_threshold=1.0,
)


class TorchNpu:
    """torch_npu.profiler as far as it is called; keeps how, and writes a folder as it does."""

    def __init__(self, writes: bool = True) -> None:
        self.calls: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []
        self._writes = writes

    @property
    def profiler(self) -> SimpleNamespace:
        return SimpleNamespace(
            profile=self.profile,
            tensorboard_trace_handler=self.keeper("tensorboard_trace_handler"),
            _ExperimentalConfig=self.keeper("_ExperimentalConfig"),
            ProfilerAction=Action,
            ProfilerActivity=SimpleNamespace(CPU="cpu", NPU="npu"),
            ProfilerLevel=SimpleNamespace(Level0="Level0", Level1="Level1"),
            AiCMetrics=SimpleNamespace(AiCoreNone="none", PipeUtilization="pipe"),
            ExportType=SimpleNamespace(Text="text", Db="db"),
        )

    def keeper(self, name: str) -> Callable[..., str]:
        def keep(**options: Any) -> str:
            self.calls[name] = options
            return name

        return keep

    def profile(self, **options: Any) -> SimpleNamespace:
        self.calls["profile"] = options
        at = options["schedule"]
        made = SimpleNamespace(step_num=0, step_rec_fn=None)
        actions = [at(0)]

        def step() -> None:
            made.step_num += 1
            actions.append(at(made.step_num))

        def stop() -> None:
            self.log += [f"{action.name}" for action in actions]
            if self._writes:
                handler = self.calls["tensorboard_trace_handler"]
                folder = Path(handler["dir_name"]) / f"{handler['worker_name']}_1_2_ascend_pt"
                folder.mkdir()
                (folder / "profiler_info_3.json").write_text("12345")

        made.start = lambda: self.log.append(f"from {made.step_num}")
        made.step, made.stop = step, stop
        return made


def collect(folder: Path, monkeypatch: pytest.MonkeyPatch, npu: TorchNpu) -> dict[str, Any]:
    """The record of a collection of FULL on rank 3."""
    monkeypatch.setitem(sys.modules, "torch_npu", npu)
    profiler = StepProfiler("npu", 3, 8, Recorder(str(folder / "rank3.jsonl")))
    profiler.start(FULL, 20)
    profiler.next(21)
    profiler.next(22)
    profiler.stop()
    (line,) = (folder / "rank3.jsonl").read_text().splitlines()
    record: dict[str, Any] = json.loads(line)
    return record


def test_the_folder_that_torch_npu_wrote_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = collect(tmp_path, monkeypatch, TorchNpu())
    assert record["steps"] == [21, 22]
    assert record["bytes"] == 5
    assert (tmp_path / record["path"] / "profiler_info_3.json").exists()


def test_steps_are_counted_as_the_trainer_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = TorchNpu()
    collect(tmp_path, monkeypatch, npu)
    assert npu.log == ["from 20", "WARMUP", "RECORD", "RECORD_AND_SAVE"]


def test_options_arrive_under_torch_npus_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = TorchNpu()
    collect(tmp_path, monkeypatch, npu)
    assert npu.calls["_ExperimentalConfig"] == {
        "profiler_level": "Level1",
        "aic_metrics": "pipe",
        "l2_cache": False,
        "record_op_args": False,
        "data_simplification": True,
        "export_type": "db",
        "gc_detect_threshold": 1.0,
    }
    assert npu.calls["profile"]["activities"] == ["cpu", "npu"]
    assert npu.calls["profile"]["with_stack"] is True
    assert npu.calls["tensorboard_trace_handler"]["dir_name"] == str(tmp_path / "profile")


def test_nothing_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch_npu swallows its own exceptions and prints them."""
    record = collect(tmp_path, monkeypatch, TorchNpu(writes=False))
    assert "torch_npu wrote no profile" in record["error"]


@pytest.mark.skipif(SOURCES not in os.environ, reason=f"{SOURCES} names no folder")
def test_torch_npu_takes_these_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npu = TorchNpu()
    collect(tmp_path, monkeypatch, npu)
    folder = Path(os.environ[SOURCES]) / "torch_npu" / "profiler"
    for file, name in (
        ("profiler.py", "profile"),
        ("profiler.py", "tensorboard_trace_handler"),
        ("experimental_config.py", "_ExperimentalConfig"),
    ):
        assert set(npu.calls[name]) <= parameters(folder / file, name)


def parameters(path: Path, name: str) -> set[str]:
    """The parameters of a function, or of a class's `__init__`."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = next(node for node in nodes if getattr(node, "name", None) == name)
    if isinstance(found, ast.ClassDef):
        found = next(node for node in found.body if getattr(node, "name", None) == "__init__")
    assert isinstance(found, ast.FunctionDef)
    return {one.arg for one in (*found.args.args, *found.args.kwonlyargs)}
