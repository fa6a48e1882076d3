"""Every path of a study, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StudyPaths:
    """The files of the study folder `root` (docs/design.md, contract "Study folder")."""

    root: Path

    @property
    def config(self) -> Path:
        """Resolved configuration, identity of the study, environment."""
        return self.root / "config.yaml"

    @property
    def database(self) -> Path:
        """Optuna's storage, where it is SQLite."""
        return self.root / "study.db"

    @property
    def journal(self) -> Path:
        """One line a finished trial."""
        return self.root / "trials.jsonl"

    @property
    def repeats_journal(self) -> Path:
        """One line a repeat of a trial: controls, rechecks, certification."""
        return self.root / "repeats.jsonl"

    @property
    def events(self) -> Path:
        """What a person was told while the study ran."""
        return self.root / "events.jsonl"

    @property
    def best(self) -> Path:
        """The best feasible configuration so far."""
        return self.root / "best.yaml"

    def best_files(self, trial: int) -> Path:
        """The trainer's own files for the configuration of a trial, where it has some."""
        return self.root / "best" / f"{trial:04d}"

    def best_folders(self) -> list[Path]:
        """The folders of all `best_files` that exist."""
        return sorted((self.root / "best").glob("[0-9]*"))

    @property
    def lock(self) -> Path:
        """Held by the sweep that runs the study."""
        return self.root / ".lock"

    @property
    def trials(self) -> Path:
        """The folder of all trials."""
        return self.root / "trials"

    def trial(self, number: int) -> Path:
        """The folder of one trial."""
        return self.trials / f"{number:04d}"

    @property
    def repeats(self) -> Path:
        """The folder of all repeats."""
        return self.root / "repeats"

    def repeat(self, number: int) -> Path:
        """The folder of one repeat."""
        return self.repeats / f"{number:04d}"

    def next_profiled(self) -> Path:
        """A folder, not made yet, for a run that somebody wants to profile."""
        folder = self.root / "profiles"
        taken = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
        return folder / f"{max(taken, default=-1) + 1:04d}"

    @property
    def report(self) -> Path:
        """The folder of the report."""
        return self.root / "report"

    @property
    def report_markdown(self) -> Path:
        """The report for people."""
        return self.report / "report.md"

    @property
    def report_table(self) -> Path:
        """Every trial as a row."""
        return self.report / "trials.csv"


def profile_folder(trial_folder: Path) -> Path:
    """What profilers wrote."""
    return trial_folder / "profile"


def rank_log_file(trial_folder: Path, rank: int) -> Path:
    """What the rank printed."""
    return trial_folder / f"rank{rank}.log"


def printed_records_file(trial_folder: Path, node: int) -> Path:
    """What the lines said that the processes of a node printed, as records."""
    return trial_folder / f"printed{node}.jsonl"


def rank_records_file(trial_folder: Path, rank: int) -> Path:
    """What the rank recorded."""
    return trial_folder / f"rank{rank}.jsonl"
