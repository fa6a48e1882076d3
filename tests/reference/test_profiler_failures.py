"""A profiler that fails must never cost the measurement."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reference_cases import content
from test_command_line import start, steps_of

from launch.rank.profile_options import ProfileOptions
from launch.rank.profiling import StepProfiler
from launch.rank.recorder import Recorder


class Profiler:
    """Stands in for torch.autograd.profiler.profile; `fails` names the call that raises."""

    fails: str = ""
    running = 0

    def __init__(self, **options: Any) -> None:
        self.call("made")

    def call(self, name: str) -> None:
        if self.fails == name:
            raise RuntimeError(f"cannot: {name}")

    def __enter__(self) -> None:
        self.call("start")
        Profiler.running += 1

    def __exit__(self, *_: object) -> None:
        Profiler.running -= 1
        self.call("stop")

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text("" if self.fails == "nothing" else '{"traceEvents": []}')
        self.call("export")


class Range:
    """Stands in for record_function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        if Profiler.fails == "range":
            raise RuntimeError("cannot: range")

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StepProfiler:
    torch = SimpleNamespace(
        autograd=SimpleNamespace(profiler=SimpleNamespace(profile=Profiler, record_function=Range)),
        distributed=SimpleNamespace(is_available=lambda: False),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Profiler, "fails", "")
    monkeypatch.setattr(Profiler, "running", 0)
    return StepProfiler("cpu", 0, 2, Recorder(str(tmp_path / "rank0.jsonl")))


def window(profiler: StepProfiler, options: ProfileOptions) -> None:
    profiler.start(options, 7, "a")
    for step in range(8, 7 + options.total_steps):
        profiler.next(step)
    profiler.stop()


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rank0.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("call", ["made", "start", "range", "stop", "export", "nothing"])
def test_a_failure_is_one_record_and_the_next_profile_works(
    profiler: StepProfiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(Profiler, "fails", call)
    window(profiler, ProfileOptions(steps=2, warmup_steps=1))
    (record,) = records(tmp_path)
    assert (record["event"], record["id"]) == ("profile", "a")
    assert (f"cannot: {call}" if call != "nothing" else "no JSON") in record["error"]
    assert not profiler.is_running
    assert Profiler.running == 0
    assert list((tmp_path / "profile").iterdir()) == []

    monkeypatch.setattr(Profiler, "fails", "")
    window(profiler, ProfileOptions(steps=2, warmup_steps=1))
    record = records(tmp_path)[-1]
    assert record["steps"] == [8, 9]
    assert (tmp_path / record["path"]).stat().st_size == record["bytes"]


def test_a_full_disk_is_a_failure_like_others(
    profiler: StepProfiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    window(profiler, ProfileOptions())
    (record,) = records(tmp_path)
    assert "No space left on device" in record["error"]
    assert list((tmp_path / "profile").iterdir()) == []


def test_ranks_that_do_not_exist_are_answered_by_rank_0(
    profiler: StepProfiler, tmp_path: Path
) -> None:
    window(profiler, ProfileOptions(ranks=(2, 3)))
    (record,) = records(tmp_path)
    assert record["error"] == "ranks [2, 3] are none of this trial's, 0 to 1"


def test_a_rank_that_does_not_collect_stays_quiet(profiler: StepProfiler, tmp_path: Path) -> None:
    window(profiler, ProfileOptions(ranks=(1,)))
    assert records(tmp_path) == []
    assert not (tmp_path / "profile").exists()


def test_torch_npu_that_is_not_loaded_is_said(tmp_path: Path) -> None:
    assert "torch_npu" not in sys.modules
    window(StepProfiler("npu", 0, 1, Recorder(str(tmp_path / "rank0.jsonl"))), ProfileOptions())
    (record,) = records(tmp_path)
    assert "the trainer has not loaded torch_npu" in record["error"]


@pytest.mark.ranks
def test_a_trial_goes_on_without_its_profile(tmp_path: Path) -> None:
    values = content("small_dit", {"steps": 4, "memory_steps": 1})
    values["measurement"]["profile"] = {"steps": 1}
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / "profile").write_text("a file where the folder should be")
    ended, by_rank = start(values, 1, folder, tmp_path / "cache")
    assert ended[0].returncode == 0, ended[0].stderr
    assert [step["profiled"] for step in steps_of(by_rank[0])] == [True, False, False, True]
    (profile,) = [record for record in by_rank[0] if record["event"] == "profile"]
    assert "FileExistsError" in profile["error"]
    assert by_rank[0][-1] == {"event": "end"}
