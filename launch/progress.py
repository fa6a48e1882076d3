"""Progress of a trial's ranks: their records, and the deadlines that apply to them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.json_object import json_object
from autotune.ports import Deadlines

_READ_BYTES = 1 << 20


@dataclass
class RankProgress:
    """When a rank was seen to progress, in seconds of one monotonic clock."""

    rank: int
    started_at: float | None = None
    last_step_at: float | None = None


class RecordFollower:
    """Reads a growing file of rank records, each time only what is new.

    A line that is not complete yet is read again later; lines that are no record
    of ours are passed over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def new_events(self) -> list[str]:
        """The names of the events that were added since the last call.

        None of what is no file: a pipe in its place would be waited for.
        """
        if not self._path.is_file():
            return []
        try:
            with self._path.open("rb") as records:
                if records.seek(0, os.SEEK_END) < self._offset:  # the program has begun it anew
                    self._offset, self._rest = 0, b""
                records.seek(self._offset)
                data = records.read(_READ_BYTES)
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_READ_BYTES:]
        return [event for event in map(_event_of, lines) if event]


def _event_of(line: bytes) -> str:
    try:
        event = json_object(line).get("event")
    except ValueError:
        return ""
    return event if isinstance(event, str) else ""


def note_events(progress: RankProgress, events: Iterable[str], now: float) -> None:
    """Takes newly read events into account; a step implies the start.

    A program that starts again, as under torchrun with restarts, has its first step before it.
    """
    for event in events:
        if event == "start" or (event == "step" and progress.started_at is None):
            progress.started_at = now
            progress.last_step_at = None
        if event == "step":
            progress.last_step_at = now


@dataclass(frozen=True)
class Wait:
    """What a trial waits for next: of which rank, until when, and what to say if it is late."""

    until: float
    reason: str


def current_wait(
    launched_at: float, running: Iterable[RankProgress], everyone: Iterable[RankProgress],
    deadlines: Deadlines,
) -> Wait:  # fmt: skip
    """The deadline that applies now.

    running: the ranks whose processes live, at least one. everyone: all ranks of the node.
    """
    running = list(running)
    everyone = list(everyone)
    late = [one for one in running if one.started_at is None]
    if late:
        return _wait(launched_at, deadlines.start_s, "start_s", late[0], "start record")
    late = [one for one in running if one.last_step_at is None]
    if late:
        all_started = max((one.started_at or launched_at for one in everyone), default=launched_at)
        return _wait(all_started, deadlines.first_step_s, "first_step_s", late[0], "first step")
    slowest = min(running, key=lambda one: one.last_step_at or 0.0)
    assert slowest.last_step_at is not None
    what = "further step, and no end,"
    return _wait(slowest.last_step_at, deadlines.step_s, "step_s", slowest, what)


def _wait(since: float, limit_s: float, name: str, rank: RankProgress, what: str) -> Wait:
    return Wait(since + limit_s, f"rank {rank.rank} made no {what} within {name}={limit_s:g} s")
