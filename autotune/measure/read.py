"""Reading the rank records of a trial's folder."""

from __future__ import annotations

from pathlib import Path

from autotune.measure.records import RankReader, RankRecords, parse_rank_records
from autotune.study.paths import rank_records_file


def read_ranks(trial_folder: Path, world_size: int) -> list[RankRecords]:
    """The records of every rank; a rank that wrote nothing has no steps."""
    return [_read(rank_records_file(trial_folder, rank), rank) for rank in range(world_size)]


def steps_done(trial_folder: Path, world_size: int) -> int:
    """How many steps every rank of a running trial has recorded."""
    return min(len(records.steps) for records in read_ranks(trial_folder, world_size))


class TrialFollower:
    """Reads the records of a running trial as they are written, each line once."""

    def __init__(self, trial_folder: Path, world_size: int) -> None:
        self._files = [rank_records_file(trial_folder, rank) for rank in range(world_size)]
        self._readers = [RankReader(rank) for rank in range(world_size)]
        self._offsets = [0] * world_size

    def look(self) -> bool:
        """Reads what is new; whether every rank has recorded another step since the last look."""
        before = self.steps
        for rank, path in enumerate(self._files):
            self._offsets[rank] += _feed(path, self._offsets[rank], self._readers[rank])
        return self.steps > before

    @property
    def steps(self) -> int:
        """How many steps every rank has recorded."""
        return min(reader.steps_read for reader in self._readers)

    @property
    def ranks(self) -> list[RankRecords]:
        """What has been read so far, by rank."""
        return [reader.records for reader in self._readers]


def _feed(path: Path, offset: int, reader: RankReader) -> int:
    """Feeds the whole lines behind `offset`; the number of bytes that they were."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            new = file.read()
    except FileNotFoundError:
        return 0
    whole = new[: new.rfind(b"\n") + 1]
    for line in whole.split(b"\n"):
        reader.feed(line.decode("utf-8", errors="replace"))
    return len(whole)


def _read(path: Path, rank: int) -> RankRecords:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return RankRecords(rank)
    return parse_rank_records(rank, text.split("\n"))
