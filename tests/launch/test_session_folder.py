"""Temporary folders of dead sweeps are removed by the next one, those of living ones are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launch.session_folder import SessionFolder, remove_abandoned

MAKE = "import sys; from launch.session_folder import SessionFolder; print(SessionFolder().path)"


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("t"))
    monkeypatch.setattr("launch.session_folder._LONGEST_TEMP_DIR", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def folder_of_a_dead_sweep(temporary: Path) -> Path:
    code = f"import launch.session_folder as s; s._LONGEST_TEMP_DIR = 1000; {MAKE}"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(made.stdout.strip())
    assert folder.parent == temporary
    (folder / "1").mkdir()
    (folder / "1" / "log").touch()
    return folder


def test_the_next_sweep_removes_what_a_dead_one_left(temporary: Path) -> None:
    left = folder_of_a_dead_sweep(temporary)
    ours = SessionFolder()
    assert not left.exists()
    assert ours.path.is_dir()
    assert remove_abandoned(temporary) == []
    ours.release()
    assert remove_abandoned(temporary) == [ours.path]


def test_others_are_left_alone(temporary: Path) -> None:
    elsewhere = folder_of_a_dead_sweep(temporary)
    (elsewhere / "owner").write_text("another host")
    new = temporary / "at-new"  # of a sweep that has not locked it yet
    new.mkdir()
    (temporary / "at-link").symlink_to(elsewhere)
    assert remove_abandoned(temporary) == []
    assert elsewhere.is_dir()
    assert new.is_dir()
