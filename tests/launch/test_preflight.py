"""What is looked at before a sweep costs time."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from autotune.errors import UserError
from launch.device_memory import MemoryInUse
from launch.preflight import Room, busy_devices, preflight

GIB = 1 << 30
Usage = namedtuple("Usage", ("total", "used", "free"))


def look(folder: Path, needed: int = 0, *, is_local: bool = True) -> list[str]:
    room = Room(folder / "not" / "yet" / "there", "study.dir", needed)
    return preflight([room], "cpu", os.environ, is_local=is_local)


def free(monkeypatch: pytest.MonkeyPatch, room: int, shared_memory: int = GIB) -> None:
    def usage(path: Path) -> Usage:
        return Usage(0, 0, shared_memory if str(path) == "/dev/shm" else room)

    monkeypatch.setattr(shutil, "disk_usage", usage)


def test_all_is_well_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 9 * GIB)
    assert look(tmp_path, 4 * GIB) == []
    assert list(tmp_path.iterdir()) == []


def test_little_room_is_told_and_none_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 4 * GIB)
    (warning,) = look(tmp_path, 4 * GIB)
    assert "has 4.0 GiB left" in warning
    assert "may take 5.0 GiB" in warning
    free(monkeypatch, GIB // 8)
    with pytest.raises(UserError, match=r"study\.dir=.* has 128.0 MiB left on its disk"):
        look(tmp_path)


def test_small_shared_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 9 * GIB, shared_memory=64 << 20)
    (warning,) = look(tmp_path)
    assert "--shm-size" in warning
    assert look(tmp_path, is_local=False) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    room = Room(Path("/proc/nobody/study"), "study.dir")
    with pytest.raises(UserError, match=r"study\.dir=/proc/nobody/study cannot be written"):
        preflight([room], "cpu", os.environ, is_local=True)


def test_devices_that_others_use_are_named() -> None:
    found = {
        "0": MemoryInUse(3 * GIB, 64 * GIB),  # a driver's own
        "1": MemoryInUse(30 * GIB, 64 * GIB),
        "GPU-1": MemoryInUse(30 * GIB, 64 * GIB),
    }
    (warning,) = busy_devices(found)
    assert "device 1 (30.0 GiB of 64.0 GiB)" in warning
    assert busy_devices({"0": found["0"]}) == []
