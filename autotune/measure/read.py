"""Reading the rank records of a trial's folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.records import RankReader, RankRecords
from autotune.measure.voices import spoken_for_all, with_own_memory
from autotune.study.paths import printed_records_file, rank_log_file, rank_records_file


@dataclass(frozen=True)
class Voices:
    """Who records. every_rank: each does; else any of them, or the lines printed on any node."""

    world_size: int
    nodes: int = 1
    every_rank: bool = True


def read_ranks(trial_folder: Path, voices: Voices) -> list[RankRecords]:
    """The records of every rank; a rank that wrote nothing has no steps."""
    follower = TrialFollower(trial_folder, voices)
    follower.look()
    return follower.ranks


def steps_done(trial_folder: Path, voices: Voices) -> int:
    """How many steps every rank of a running trial has recorded."""
    return min(len(records.steps) for records in read_ranks(trial_folder, voices))


class TrialFollower:
    """Reads the records of a running trial as they are written, each line once."""

    def __init__(self, trial_folder: Path, voices: Voices) -> None:
        self._every_rank = voices.every_rank
        ranks = range(voices.world_size)
        self._ranks = [_File(rank_records_file(trial_folder, rank), rank) for rank in ranks]
        nodes = range(voices.nodes)
        self._printed = [_File(printed_records_file(trial_folder, node), node) for node in nodes]

    def look(self) -> bool:
        """Reads what is new; whether every rank has recorded another step since the last look."""
        before = self.steps
        for file in (*self._ranks, *self._printed):
            file.read()
        return self.steps > before

    @property
    def steps(self) -> int:
        """How many steps every rank has recorded."""
        of_ranks = [file.reader.steps_read for file in self._ranks]
        if self._every_rank and any(of_ranks):
            return min(of_ranks)
        return max([*of_ranks, *(file.reader.steps_read for file in self._printed)])

    @property
    def ranks(self) -> list[RankRecords]:
        """What has been read so far, by rank."""
        own = [file.reader.records for file in self._ranks]
        if self._every_rank and any(rank.steps for rank in own):
            return with_own_memory(own)
        return spoken_for_all(own, self.printed)

    @property
    def printed(self) -> list[RankRecords]:
        """What the lines said that were printed, by node: the fallback, and a cross-check."""
        return [file.reader.records for file in self._printed]


class _File:
    """One file of records, of a rank or of a node, and how far it was read."""

    def __init__(self, path: Path, number: int) -> None:
        self.reader = RankReader(number)
        self._number = number
        self._path = path
        self._offset = 0

    def read(self) -> None:
        """Feeds the whole lines that are new to the reader.

        A program may have put a device or a pipe in the file's place, which has no end.
        """
        if not self._path.is_file():
            return
        try:
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._offset:  # the program has begun it anew
                    self.reader, self._offset = RankReader(self._number), 0
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.split(b"\n"):
            self.reader.feed(line.decode("utf-8", errors="replace"))


_HEAD_BYTES, _TAIL_BYTES = 1 << 16, 1 << 18


def read_logs(trial_folder: Path, world_size: int) -> dict[int, str]:
    """What the ranks printed, the beginning and the end of it, by rank."""
    texts = {rank: _ends(rank_log_file(trial_folder, rank)) for rank in range(world_size)}
    return {rank: text for rank, text in texts.items() if text}


def _ends(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            end = file.seek(0, 2)
            file.seek(max(len(head), end - _TAIL_BYTES))
            tail = file.read()
    except FileNotFoundError:
        return ""
    gap = b"\n" if len(head) + len(tail) < end else b""
    return (head + gap + tail).decode("utf-8", errors="replace")
