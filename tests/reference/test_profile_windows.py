"""The memory cap while a profiler runs, and the device's own figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launch.rank.profile_options import ProfileOptions
from launch.rank.profiling import StepProfiler
from launch.rank.recorder import Recorder
from launch.reference import profile_windows
from launch.reference.memory import ProfiledMeter
from launch.reference.parallel import Group
from launch.reference.phases import PhaseTimer
from launch.reference.profile_windows import ProfileWindows
from launch.reference.schedule import Schedule, Step, StepKind, Window
from launch.reference.train import StepMemory

ALONE = Group((0,), 0, None)


class Device:
    """Keeps what it is told."""

    type = "cpu"

    def __init__(self, *used: int) -> None:
        self.log: list[str] = []
        self._used = iter(used)

    def cap_memory(self, limit_bytes: int, live_bytes: int, known_peak: int | None = None) -> None:
        self.log.append(f"cap {limit_bytes}")

    def uncap_memory(self) -> None:
        self.log.append("uncap")

    def used_bytes(self) -> int | None:
        return next(self._used, None)

    def mark(self) -> float:
        return 0.0


def windows(
    device: Any, folder: Path | None, limit: int | None, world: Group = ALONE
) -> tuple[ProfileWindows, Any]:
    timer = PhaseTimer(device)
    recorder = Recorder(str(folder / "rank0.jsonl") if folder else None)
    profiler = StepProfiler("cpu", 0, 1, recorder)
    return ProfileWindows(profiler, timer, device, limit, ProfiledMeter(), world), timer


def test_the_cap_is_lifted_for_the_window_and_put_back(tmp_path: Path) -> None:
    device = Device()
    ours, timer = windows(device, tmp_path, 1000)
    schedule = Schedule(0, 2)
    schedule.request(Window(ProfileOptions(steps=2), "a"))
    annotated = []
    while (step := schedule.next()) is not None:
        device.log.append(step.kind.value)
        ours.before(step)
        annotated.append(timer.annotate)
        ours.after(step)
    assert device.log == ["profile", "uncap", "profile", "cap 1000", "plain", "plain"]
    assert annotated == [True, True, False, False]


def test_all_ranks_wait_until_the_profile_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next step of the others, which is scored, would hold the writing."""
    waits: list[int] = []

    def barrier(group: object) -> None:
        waits.append(len(list((tmp_path / "profile").glob("*.pt.trace.json.gz"))))

    monkeypatch.setattr(profile_windows.dist, "barrier", barrier)
    ours, _ = windows(Device(), tmp_path, None, Group((0, 1), 0, object()))  # type: ignore[arg-type]
    schedule = Schedule(0, 1, ProfileOptions(steps=2))
    while (step := schedule.next()) is not None:
        ours.before(step)
        ours.after(step)
    assert waits == [1]


def test_without_a_cap_there_is_none_to_put_back(tmp_path: Path) -> None:
    device = Device()
    ours, _ = windows(device, tmp_path, None)
    schedule = Schedule(0, 0, ProfileOptions())
    while (step := schedule.next()) is not None:
        ours.before(step)
        ours.after(step)
    assert device.log == []


def test_outside_a_trial_the_steps_are_made_without_a_profile() -> None:
    ours, timer = windows(Device(), None, None)
    step = Schedule(0, 0, ProfileOptions()).next()
    assert step is not None
    ours.before(step)
    assert not timer.annotate
    ours.after(step)


def test_the_devices_peak_is_the_largest_seen_but_under_a_profiler() -> None:
    device: Any = Device(700, 900, 5000, 800)
    memory = StepMemory(device, ProfiledMeter(), None)
    kinds = (StepKind.MEMORY, StepKind.PLAIN, StepKind.PROFILE, StepKind.PLAIN)
    peaks = [memory.after(Step(n, kind))["peak_device_bytes"] for n, kind in enumerate(kinds)]
    assert peaks == [700, 900, 900, 900]


def test_a_device_without_memory_of_its_own_has_no_figure() -> None:
    device: Any = Device()
    found = StepMemory(device, ProfiledMeter(), None).after(Step(0, StepKind.PLAIN))
    assert "peak_device_bytes" not in found
