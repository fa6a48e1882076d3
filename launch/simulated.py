"""A launcher without processes or devices, on a virtual clock.

For tests of the sweep and for whole benchmark nights in a second: `wait` moves the
clock to the next end instead of waiting for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from autotune.ports import EndKind, RankExit, TrialEnd, TrialRequest
from launch.errors import DevicesUnavailable
from launch.trial_files import write_trial_files

FIRST_MOMENT = 1_700_000_000.0
"""Where the virtual clock starts unless told otherwise, in seconds since the epoch."""


@dataclass(frozen=True)
class SimulatedTrial:
    """What a trial does.

    duration_s: from its start to its end on the virtual clock; infinite for a trial
        that only ends when it is stopped.
    records: for each rank, the records that its file holds at the end. They are written
        as the clock moves, evenly over the duration, and at once where that is infinite.
    kind, reason, exits: as in `TrialEnd`; exits are all 0 when left out.
    logs: output by rank.
    finishing_s: from `Launcher.finish` to the end, where that comes before the end that
        the trial has anyway; infinite for one that does not heed it.
    finishing_records: for each rank, the records that are added at that end, in place of
        those that were not written when finishing was asked for.
    """

    duration_s: float
    records: Sequence[Sequence[Mapping[str, Any]]] = ()
    kind: EndKind = EndKind.FINISHED
    reason: str = "every rank exited with 0"
    exits: tuple[RankExit, ...] = ()
    logs: Mapping[int, str] = field(default_factory=dict)
    finishing_s: float = 0.0
    finishing_records: Sequence[Sequence[Mapping[str, Any]]] = ()

    def __post_init__(self) -> None:
        for name in ("duration_s", "finishing_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is 0 s or more, got {getattr(self, name)}")


Behaviour = Callable[[TrialRequest], SimulatedTrial]
"""What a request leads to."""


@dataclass
class _Running:
    request: TrialRequest
    trial: SimulatedTrial
    started_at: float
    written: int = 0  # records of each rank

    @property
    def ends_at(self) -> float:
        return self.started_at + self.trial.duration_s


class SimulatedLauncher:
    """Plays trials as `behaviour` has them, as many at a time as there are slots."""

    def __init__(
        self, behaviour: Behaviour, slots: int = 1, starts_at: float = FIRST_MOMENT
    ) -> None:
        if slots < 1:
            raise ValueError(f"a launcher has at least one slot, got {slots}")
        self._behaviour = behaviour
        self._slots = slots
        self._now = starts_at
        self._running: dict[int, _Running] = {}
        self._stopped: list[TrialEnd] = []
        self.suspected: list[tuple[int, int | None]] = []

    @property
    def slots(self) -> int:
        """How many trials run at once."""
        return self._slots

    def now(self) -> float:
        """The virtual clock, in seconds since the epoch."""
        return self._now

    def start(self, request: TrialRequest) -> None:
        """Begins a trial. Raises `DevicesUnavailable` when all slots are taken."""
        if len(self._running) >= self._slots:
            raise DevicesUnavailable(
                request.placement.device,
                "a free slot",
                f"are {self._slots} slot(s), all taken",
                "Wait for a trial to end before the next is started",
            )
        write_trial_files(request)
        trial = self._behaviour(request)
        self._running[request.trial] = _Running(request, trial, self._now)

    def wait(self, timeout_s: float) -> Sequence[TrialEnd]:
        """Moves the clock to the next end, at most by `timeout_s`, and returns what ended."""
        if self._stopped:
            ended, self._stopped = tuple(self._stopped), []
            return ended
        until = self._now + timeout_s
        next_end = min((one.ends_at for one in self._running.values()), default=until)
        self._now = min(max(next_end, self._now), until)
        for one in self._running.values():
            _write_records(one, _share_of_time(one, self._now))
        over = [one for one in self._running.values() if one.ends_at <= self._now]
        return tuple(self._finish(one) for one in over)

    def finish(self, trial: int) -> None:
        """Lets a running trial end as its `finishing_s` and `finishing_records` say."""
        running = self._running.get(trial)
        if running is None:
            return
        if self._now + running.trial.finishing_s < running.ends_at:
            _write_records(running, _share_of_time(running, self._now))
            running.trial = _finishing(running, self._now)

    def stop(self, trial: int) -> None:
        """Ends a running trial at once, with the records that it had by then."""
        running = self._running.pop(trial, None)
        if running is None:
            return
        _write_logs(running)
        exits = tuple(RankExit(rank, -15, by_us=True) for rank in _ranks(running.request))
        end = TrialEnd(
            trial, EndKind.STOPPED, "the trial was stopped", running.started_at, self._now, exits
        )
        self._stopped.append(end)

    def suspect(self, trial: int, rank: int | None) -> None:
        """Remembers it in `suspected`."""
        self.suspected.append((trial, rank))

    def notices(self) -> Sequence[str]:
        """None: nothing happens that was not asked for."""
        return ()

    def close(self) -> None:
        """Forgets what still runs. May be repeated."""
        self._running.clear()

    def _finish(self, running: _Running) -> TrialEnd:
        del self._running[running.request.trial]
        _write_records(running, share=1.0)
        _write_logs(running)
        trial = running.trial
        exits = trial.exits or tuple(RankExit(rank, 0) for rank in _ranks(running.request))
        return TrialEnd(
            running.request.trial,
            trial.kind,
            trial.reason,
            running.started_at,
            running.ends_at,
            exits,
        )


def _finishing(running: _Running, now: float) -> SimulatedTrial:
    """What a trial does that was asked to finish now."""
    trial = running.trial
    records = [
        [*before[: running.written], *after]
        for before, after in zip_longest(trial.records, trial.finishing_records, fillvalue=())
    ]
    return SimulatedTrial(
        duration_s=now + trial.finishing_s - running.started_at,
        records=records,
        logs=trial.logs,
        finishing_s=math.inf,
    )


def _ranks(request: TrialRequest) -> range:
    return range(request.placement.world_size)


def _share_of_time(running: _Running, now: float) -> float:
    lasts_s = running.trial.duration_s
    if math.isinf(lasts_s) or lasts_s == 0:
        return 1.0
    return min((now - running.started_at) / lasts_s, 1.0)


def _write_records(running: _Running, share: float) -> None:
    """Appends to each rank's file what of the first `share` of its records is not there yet."""
    trial = running.trial
    longest = max((len(records) for records in trial.records), default=0)
    due = int(longest * share)
    if due <= running.written:
        return
    for rank, records in enumerate(trial.records):
        lines = "".join(f"{json.dumps(record)}\n" for record in records[running.written : due])
        path = running.request.folder / f"rank{rank}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.write(lines)
    running.written = due


def _write_logs(running: _Running) -> None:
    for rank, text in running.trial.logs.items():
        (running.request.folder / f"rank{rank}.log").write_text(text, encoding="utf-8")
