"""Reading the rank records of a trial's folder."""

from __future__ import annotations

from pathlib import Path

from autotune.measure.records import RankRecords, parse_rank_records
from autotune.study.paths import rank_records_file


def read_ranks(trial_folder: Path, world_size: int) -> list[RankRecords]:
    """The records of every rank; a rank that wrote nothing has no steps."""
    return [_read(rank_records_file(trial_folder, rank), rank) for rank in range(world_size)]


def steps_done(trial_folder: Path, world_size: int) -> int:
    """How many steps every rank of a running trial has recorded."""
    return min(len(records.steps) for records in read_ranks(trial_folder, world_size))


def _read(path: Path, rank: int) -> RankRecords:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return RankRecords(rank)
    return parse_rank_records(rank, text.split("\n"))
