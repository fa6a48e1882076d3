"""One sweep over one study: the search, with control runs of the baseline in between."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from autotune.certify.doubts import next_doubt, steady_seconds
from autotune.certify.results import NextRun, Results, next_repeats
from autotune.measure.outcome import Failure, Status
from autotune.ports import Launcher
from autotune.search.gate import MemoryGatekeeper
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.blas import one_thread
from autotune.search.point_sampler import PointSampler
from autotune.space.point import Point
from autotune.study.best import record_of
from autotune.study.repeat import Role
from autotune.study.study import Study
from autotune.study.trial_record import TrialRecord
from autotune.sweep.bench import Bench
from autotune.sweep.plan import SweepPlan
from autotune.sweep.progress import (
    Listener,
    Progress,
    RunningTrial,
    estimate_left_s,
    typical_cost_s,
)
from autotune.sweep.proposer import Proposer

# So many trials that come to nothing one after the other, the baseline first, for the same reason:
# the cause is not in the points. One that hangs costs all of its deadlines.
_HOPELESS_AFTER = {Status.HUNG: 2, Status.FAILED: 3, Status.INFRASTRUCTURE: 5}
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?)\b", re.IGNORECASE)
_INTERRUPTIONS = 3
# Of `max_hours`, certification may keep back this share.
_MOST_RESERVED = 1 / 3
# Ending processes, exporting and reporting take so long at most: seconds, and share of `max_hours`.
_CLOSING_S, _CLOSING_SHARE = 10.0, 0.05


class SweepEnd(StrEnum):
    """Why a sweep stopped launching trials."""

    TRIALS_USED = "search.max_trials is reached"
    TIME_USED = "search.max_hours is used up"
    SPACE_USED = "no legal point is left to try"
    HOPELESS = "the first trials all failed for the same reason"
    BLOCKED = "no trial can succeed before this is mended"


@dataclass
class Sweep:
    """The loop. `first` are points that are tried before the sampler is asked.

    knowledge: of the space, beforehand. changed: called after every kept result, to export what
    is best now. gatekeeper: None to launch whatever the sampler proposes. tick_s: how long at most
    nothing is looked at, on the launcher's clock.
    """

    study: Study
    bench: Bench
    launcher: Launcher
    sampler: PointSampler
    plan: SweepPlan
    knowledge: Knowledge
    listener: Listener
    changed: Callable[[], None]
    first: list[Point] = field(default_factory=list)
    gatekeeper: MemoryGatekeeper | None = None
    tick_s: float = 0.25
    _queue: list[Point] = field(default_factory=list)
    _started_at: float = 0.0
    _records_before: int = 0
    _is_blocked: bool = False
    _seen: _Seen | None = None
    _without_doubt: Results | None = None

    def __post_init__(self) -> None:
        self.proposer = Proposer(
            self.study, self.sampler, self.gatekeeper, self.launcher.now, self._refused
        )

    def run(self) -> SweepEnd:
        """Runs until the budget or the space is used up, and says which; then certifies.

        Trials that run when `max_trials` is reached are finished; those that run when the time is
        used up are not, and none begins that would not be over by then. An interrupt passes
        through; the caller closes the launcher and `stop` closes the trials.
        """
        self._started_at, self._records_before = self.launcher.now(), len(self.study.records)
        lost = [r.parameters for r in self.study.records if self._is_open_again(r)]
        interrupted = Counter(self.study.interrupted_points())
        # A point that sweeps have died under again and again does not come first any more.
        again = [point for point, times in interrupted.items() if times <= _INTERRUPTIONS]
        wanted = [self.study.space.baseline, *self.first, *lost, *again]
        self._queue = [p for p in dict.fromkeys(wanted) if not self._is_measured(p)]
        end = self._search()
        if end is SweepEnd.SPACE_USED and self.gatekeeper is not None and self._unseen_count() > 0:
            self.listener.said(
                "the memory gate refuses every point that is left, since it is not expected to "
                "fit; memory.gate=false launches them too"
            )
        if _is_worth_certifying(end):
            self._certify()
        return end

    def _search(self) -> SweepEnd:
        while True:
            end = self._launch_what_fits()
            if not self.bench.running and end is not None:
                return end
            if end is not None and _is_worth_certifying(end):
                # Devices that are free already need not wait for the slowest of the last trials.
                self._keep_time_for_contest()
                self._start_repeats(self._waiting_repeats(Role.RECHECK))
            self._wait()
            if self._is_time_used():
                self._cut_off()
                return SweepEnd.TIME_USED

    def _certify(self) -> None:
        """Rechecks, then the contest, as many runs at a time as the devices hold."""
        self._keep_time_for_contest()
        while next_repeats(self.bench.results):
            if not self.bench.running and not self._has_time_for_a_run():
                self.listener.said("search.max_hours is used up: the winner is not certified")
                return
            self._start_repeats(self._waiting_repeats())
            self._wait()
            if self._is_time_used():
                self._cut_off()
            self._keep_time_for_contest()

    def _waiting_repeats(self, *roles: Role) -> list[NextRun]:
        """What certification needs next and does not run yet, of these roles or of all."""
        under_way = [(trial.role, trial.point, trial.round) for trial in self.bench.running]
        orders = [order for order in next_repeats(self.bench.results) if order not in under_way]
        return [order for order in orders if not roles or order[0] in roles]

    def _keep_time_for_contest(self) -> None:
        """Gives up rechecks that would take the contest's time.

        For good: a recheck after the contest could begin another one.
        """
        left_s = self._time_left_s()
        if left_s is None or not self.bench.results.to_recheck:
            return
        turns = 1 + self.bench.contest_turns(self._trials_left(), max(self.launcher.slots, 1))
        if left_s < turns * self._repeat_cost_s():
            self.bench.give_up_rechecks()

    def _repeat_cost_s(self) -> float:
        """Seconds that one more run of a measured point takes: trials may have been cut short."""
        typical = typical_cost_s(self.study.records) or 0.0
        costs = [repeat.record.cost_s for repeat in self.study.repeats if repeat.record.cost_s > 0]
        return max(typical, statistics.fmean(costs) if costs else 0.0)

    def _start_repeats(self, orders: Sequence[NextRun]) -> None:
        """As many as the devices hold, where there is time for them."""
        if self._has_time_for_a_run():
            for order in orders[: max(self.bench.free_slots, 0)]:
                self.bench.start_repeat(*order)

    def _cut_off(self) -> None:
        """Gives up what still runs; the launcher ends its processes when it is closed."""
        numbers = self.stop(f"interrupted: {SweepEnd.TIME_USED.value}")
        if numbers:
            trials = ", ".join(map(str, numbers))
            self.listener.said(
                f"{SweepEnd.TIME_USED.value} while trial {trials} ran; its point may be tried again"
            )

    def _wait(self) -> None:
        ended = self.bench.wait(self.tick_s)
        for notice in self.launcher.notices():
            self.listener.said(notice)
        for record in ended:
            trial = record if isinstance(record, TrialRecord) else record.record
            self._heed(trial.outcome.failure)
            if isinstance(record, TrialRecord):
                if self._is_open_again(record):
                    self._queue.append(record.parameters)
                self.changed()
                self.listener.finished(record, self.progress())
            else:
                self.changed()
                self.listener.repeated(record, self.progress())
        self.listener.moment(self.progress())

    def _heed(self, failure: Failure | None) -> None:
        """Says what a person has to do, and whether the sweep can go on without it."""
        if failure is None:
            return
        if failure.stops_sweep:
            self._is_blocked = True
        if failure.stops_sweep or failure.is_of_device:
            self.listener.said(failure.advice)

    def stop(self, reason: str) -> list[int]:
        """Closes the running trials without a result; returns their numbers."""
        numbers = [trial.trial for trial in self.bench.running if trial.role is None]
        self.bench.forget()
        self.study.close_running(reason)
        return numbers

    def progress(self) -> Progress:
        """This moment, for a person."""
        now, study, running = self.launcher.now(), self.study, self.bench.running
        return Progress(
            running=running,
            results=self.bench.results,
            finished=study.finished,
            max_trials=self.plan.search.max_trials,
            unseen=self._unseen_count(),
            left_s=estimate_left_s(
                study.records,
                running,
                max(min(self._trials_left(), self._unseen_count() - self._skipped_count()), 0),
                max(self.launcher.slots, 1),
                self._time_left_s(),
                now,
                self.bench.turns_left(self._trials_left(), max(self.launcher.slots, 1)),
            ),
            now=now,
        )

    def _launch_what_fits(self) -> SweepEnd | None:
        """Fills the free slots; why nothing more is launched, or None when all are taken."""
        while self.bench.free_slots > 0:
            end = self._reason_to_end()
            if end is not None:
                return end
            if self._control_is_due():
                self.bench.start_repeat(Role.CONTROL, self.study.space.baseline, 0)
            elif self._queue:
                point = self._queue.pop(0)
                note = self.proposer.note(point)
                self.bench.start_trial(self.study.ask_for(point), point, note)
            elif (doubtful := self._next_doubt()) is not None:
                self.bench.start_repeat(Role.RECHECK, doubtful, 0)
            else:
                self.sampler.steady_s = steady_seconds(self.study.space, self.bench.results)
                proposal = self.proposer.propose()
                if proposal is None:
                    return SweepEnd.SPACE_USED
                self.bench.start_trial(proposal.number, proposal.point, proposal.note)
        return None

    def _next_doubt(self) -> Point | None:
        results = self.bench.results
        # Asked for at every tick while a slot is free: no new run, no new doubt.
        if results is self._without_doubt:
            return None
        again = [trial.point for trial in self.bench.running if trial.role is not None]
        with one_thread():
            point = next_doubt(self.study.space, results, self.knowledge, again)
        if point is None:
            self._without_doubt = results
        return point

    def _refused(self, record: TrialRecord) -> None:
        self.listener.finished(record, self.progress())

    def _control_is_due(self) -> bool:
        every, base = self.plan.control_every, self.bench.results.baseline_standing
        if not every or base is None or not base.is_usable or not self._trials_left():
            return False
        running = self.bench.running
        controls = sum(repeat.role is Role.CONTROL for repeat in self.study.repeats)
        controls += sum(trial.role is Role.CONTROL for trial in running)
        trials = self.study.finished + sum(trial.role is None for trial in running)
        return trials // every > controls

    def _reason_to_end(self) -> SweepEnd | None:
        if self._is_blocked:
            return SweepEnd.BLOCKED
        if self._trials_left() <= 0:
            return SweepEnd.TRIALS_USED
        left_s = self._time_left_s()
        if left_s is not None and left_s <= self._reserved_s():
            return SweepEnd.TIME_USED
        if not self._has_time_for_a_run():
            return SweepEnd.TIME_USED
        if not self._queue and self._unseen_count() <= 0:
            return SweepEnd.SPACE_USED
        if is_hopeless(self.study.records, self._records_before):
            return SweepEnd.HOPELESS
        return None

    def _trials_left(self) -> int:
        running = sum(trial.role is None for trial in self.bench.running)
        return self.plan.search.max_trials - self.study.finished - running

    def _time_left_s(self) -> float | None:
        if self.plan.search.max_hours is None:
            return None
        whole = self.plan.search.max_hours * 3600
        used = self.launcher.now() - self._started_at
        return whole - min(_CLOSING_S, _CLOSING_SHARE * whole) - used

    def _is_time_used(self) -> bool:
        left_s = self._time_left_s()
        return left_s is not None and left_s <= 0

    def _has_time_for_a_run(self) -> bool:
        """Whether a run of the usual length would be over in time."""
        left_s = self._time_left_s()
        return left_s is None or left_s > (typical_cost_s(self.study.records) or 0.0)

    def _reserved_s(self) -> float:
        """Seconds of `max_hours` that certification will take."""
        typical = self._repeat_cost_s()
        if self.plan.search.max_hours is None:
            return 0.0
        most = self.plan.search.max_hours * 3600 * _MOST_RESERVED
        side_by_side = max(self.launcher.slots, 1)
        return min(typical * self.bench.turns_left(self._trials_left(), side_by_side), most)

    def _unseen_count(self) -> int:
        """Legal points that were never launched; about so many where nobody has counted them."""
        space, launched = self.study.space, self._known().launched
        size = int(space.size_estimate) if space.size is None else space.size
        return size - len(launched) - sum(t.point not in launched for t in self._running_trials())

    def _skipped_count(self) -> int:
        """Points that the gate has refused and nobody launched."""
        known = self._known()
        running = {trial.point for trial in self._running_trials()}
        return len(known.skipped - running) if known.skipped else 0

    def _known(self) -> _Seen:
        """Made again only when a trial has ended: this is asked for many times a second."""
        records = self.study.records
        if self._seen is None or self._seen.records != len(records):
            ended = [r for r in records if r.was_launched and not self._is_open_again(r)]
            launched = {r.parameters for r in ended}
            skipped = {r.parameters for r in records if not r.was_launched}
            self._seen = _Seen(len(records), launched, skipped - launched)
        return self._seen

    def _running_trials(self) -> list[RunningTrial]:
        return [trial for trial in self.bench.running if trial.role is None]

    def _is_open_again(self, record: TrialRecord) -> bool:
        # In this order: counting attempts goes through all records, and few trials are lost.
        if not record.status.may_retry:
            return False
        return self.study.attempts(record.parameters) < self.plan.search.max_attempts

    def _is_measured(self, point: Point) -> bool:
        launched = (record for record in self.study.records if record.was_launched)
        record = record_of(launched, point)
        return record is not None and not self._is_open_again(record)


@dataclass(frozen=True)
class _Seen:
    """Points by what so many records say of them.

    launched: not to be launched again. skipped: refused by the gate, and not launched since.
    """

    records: int
    launched: set[Point]
    skipped: set[Point]


def _is_worth_certifying(end: SweepEnd) -> bool:
    return end not in (SweepEnd.HOPELESS, SweepEnd.BLOCKED)


def is_hopeless(records: Sequence[TrialRecord], before: int = 0) -> bool:
    """Whether the first trials, and no others, were made, and all failed for one reason.

    Which rank said so, at which address and after how many seconds, makes no difference. before:
    how many records there were when the sweep began: a person may have mended something since, so
    that as many trials are made anew.
    """
    launched = [record for record in records if record.was_launched]
    reasons = {(record.status, _NUMBER.sub("", record.outcome.reason)) for record in launched}
    if len(reasons) != 1:
        return False
    ((status, _),) = reasons
    anew = sum(record.was_launched for record in records[before:])
    return status in _HOPELESS_AFTER and anew >= _HOPELESS_AFTER[status]
