"""The disk that profiles take."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.config.quantities import format_bytes
from autotune.space.point import Point
from autotune.study.paths import StudyPaths, profile_folder
from autotune.study.trial_record import TrialRecord


@dataclass
class ProfileBudget:
    """Keeps the profiles of a study within a number of bytes.

    is_used_up: nothing is left that may be removed, so no more should be collected.
    """

    paths: StudyPaths
    bytes: int
    is_used_up: bool = False

    def make_room(self, records: Sequence[TrialRecord], keep: Collection[Point]) -> list[str]:
        """Removes profiles of the slowest trials while there are too many bytes of them.

        keep: points whose profiles stay, as do those that somebody asked for. Returns what a
        person should know.
        """
        folders = {folder: size_of(folder) for folder in self._folders()}
        total = sum(folders.values())
        removable = sorted(
            (record for record in records if record.parameters not in keep),
            key=lambda record: -(record.outcome.batch_time_s or float("inf")),
        )
        removed = 0
        for record in removable:
            folder = profile_folder(self.paths.trial(record.trial))
            if total <= self.bytes:
                break
            if folder in folders and not (folder / "request.json").exists():
                total -= folders[folder]
                shutil.rmtree(folder)
                removed += 1
        was_used_up, self.is_used_up = self.is_used_up, total > self.bytes
        said = []
        if removed:
            said.append(
                f"profiles of {removed} slower trials were removed to keep "
                f"profile.disk_budget={format_bytes(self.bytes)}"
            )
        if self.is_used_up and not was_used_up:
            said.append(
                f"profiles take {format_bytes(total)}, more than profile.disk_budget; no more are "
                "collected"
            )
        return said

    def _folders(self) -> list[Path]:
        return [
            folder
            for parent in (self.paths.trials, self.paths.repeats)
            if parent.is_dir()
            for trial in parent.iterdir()
            if (folder := profile_folder(trial)).is_dir()
        ]


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder.

    One that goes away meanwhile, as a running trial's temporary files do, takes none.
    """
    return _size(path) + sum(map(_size, path.rglob("*")))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0
