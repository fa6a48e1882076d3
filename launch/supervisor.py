"""The process that owns the ranks of one trial on one node.

It is started by the owner (`launch.node_work`), detaches itself, reads a `NodeJob` and
a `Meeting` from its standard input, runs the ranks and writes a `NodeEnd` to its
standard output when none of their processes is left; until then an empty line now and then
says that it is alive. A line on standard input stops the
trial; the end of standard input means that the owner is gone, and ends it too.

Detached, because Ray kills a worker's direct children and nothing else; a subreaper,
because ranks start processes in sessions of their own. Standard library and psutil only.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Batch
from autotune.ports import Deadlines, EndKind, RankExit
from launch.leftovers import Leftovers
from launch.node_job import HEARTBEAT_S, Meeting, NodeEnd, NodeJob
from launch.printed_records import PrintedRecords
from launch.process_memory import ProcessMemory
from launch.process_tree import become_subreaper, descendants, end_all
from launch.progress import RankProgress, RecordFollower, current_wait, note_events
from launch.rank_environment import rank_environment
from launch.rank_output import BoundedLog, RankOutput
from launch.rank_starter import RankStarter, starter_for

PEERS_GRACE_S = 1.5
"""After a rank failed: how long the others may go on, to write what they know of it."""

OWNER_GONE_GRACE_S = 2.0
"""The longest time between SIGTERM and SIGKILL when nobody waits for the trial any more."""

GIVE_UP_S = 60.0
"""How long processes that survive SIGKILL are waited for."""

NOT_STARTED_CODE = 127
"""Exit code of a rank whose program could not be started, as in a shell."""

_LONGEST_LOOK_S = 2.0
_SILENT = 3
# How often what ranks have open is looked at, and how long they are said to start, in seconds.
_LEFTOVERS_OFTEN_S, _LEFTOVERS_SELDOM_S, _STARTING_S = 1.0, 10.0, 30.0
_OUTPUT, _OWNER, _WAKE = "output", "owner", "wake"


class Supervisor:
    """Runs the ranks of one node to their end.

    owner: file descriptor from which the owner's wish to stop is read; voice: one to which
    heartbeats are written. wake: file descriptor that becomes readable on a signal.
    """

    def __init__(
        self, job: NodeJob, starter: RankStarter, owner: int, voice: int, wake: int
    ) -> None:
        self._job = job
        self._starter = starter
        self._owner = owner
        self._voice = voice
        self._heartbeat_due = 0.0
        self._wake = wake
        self._selector = selectors.DefaultSelector()
        self._outputs: dict[int, RankOutput] = {}
        self._exits: dict[int, RankExit] = {}
        self._progress = {rank: RankProgress(rank) for rank in job.started}
        self._followers = [RecordFollower(path) for path in _record_files(job)]
        self._printed = _printed_records(job)
        self._memory = ProcessMemory() if job.watches_memory else None
        self._leftovers = Leftovers(job.leftovers, time.time())
        self._leftovers_due = 0.0
        self._asked_to_end: NodeEnd | None = None
        self._ending = False
        self._launched_at = 0.0
        self._failed_at: float | None = None

    def run(self, meeting: Meeting) -> NodeEnd:
        """Starts the ranks and returns when none of their processes is left."""
        self._selector.register(self._owner, selectors.EVENT_READ, _OWNER)
        self._selector.register(self._wake, selectors.EVENT_READ, _WAKE)
        try:
            end = self._start(meeting) or self._watch()
        finally:
            left = self._end_processes()
        end = replace(end, exits=tuple(self._exits[rank] for rank in sorted(self._exits)))
        if left:
            names = ", ".join(str(process.pid) for process in left)
            return replace(end, kind=EndKind.LOST, reason=f"processes {names} survive SIGKILL")
        return end

    def _start(self, meeting: Meeting) -> NodeEnd | None:
        job = self._job
        environments = {rank: rank_environment(job, meeting, rank) for rank in job.started}
        outputs = self._starter.start(job.argv, job.cwd, environments)
        for rank in job.started:
            try:
                descriptor = next(outputs)
            except (OSError, ValueError) as error:  # a NUL in a word, an = in a variable's name
                self._exits[rank] = RankExit(rank, NOT_STARTED_CODE)
                job.log(rank).write_text(f"{error}\n", encoding="utf-8")
                return NodeEnd(EndKind.RANK_FAILED, f"rank {rank} could not be started: {error}")
            self._outputs[descriptor] = RankOutput(
                descriptor, BoundedLog(job.log(rank)), self._listener(rank)
            )
            self._selector.register(descriptor, selectors.EVENT_READ, _OUTPUT)
        return None

    def _watch(self) -> NodeEnd:
        """Waits for a reason to end the trial."""
        self._launched_at = time.monotonic()
        if self._job.one_speaks_for_all:  # what starts in silence is told by its first step
            self._note(self._progress, ["start"], self._launched_at)
        while True:
            now = time.monotonic()
            self._reap()
            verdict = self._asked_to_end or self._judge_exits(now) or self._judge_progress(now)
            if isinstance(verdict, NodeEnd):
                return verdict
            self._look(verdict - now)

    def _judge_exits(self, now: float) -> NodeEnd | float | None:
        """The end that exit codes call for, or the moment when they will, or None."""
        failed = [one for one in self._exits.values() if one.code != 0]
        if not failed:
            done = len(self._exits) == len(self._job.started)
            return NodeEnd(EndKind.FINISHED, "every rank exited with 0") if done else None
        if self._failed_at is None:
            self._failed_at = now
        until = self._failed_at + PEERS_GRACE_S
        if now >= until or len(self._exits) == len(self._job.started):
            return NodeEnd(EndKind.RANK_FAILED, describe_exits(failed))
        return until

    def _judge_progress(self, now: float) -> NodeEnd | float:
        """The end of a trial that is late, or the moment to look again."""
        for rank, follower in zip(_speakers(self._job), self._followers, strict=True):
            ranks = self._progress if rank is None else (rank,)
            self._note(ranks, follower.new_events(), now)
        if self._memory is not None:
            self._memory.look(self._starter.running)
        self._look_for_leftovers(now)
        everyone = self._progress.values()
        running = [one for one in everyone if one.rank not in self._exits]
        wait = current_wait(self._launched_at, running, everyone, self._deadlines)
        if now >= wait.until:
            return NodeEnd(EndKind.HUNG, wait.reason)
        return min(wait.until, now + self._look_every_s, self._leftovers_due)

    def _look_for_leftovers(self, now: float) -> None:
        """Often while the ranks start, when most is opened, and seldom later: it costs time."""
        if now < self._leftovers_due:
            return
        is_starting = now < self._launched_at + _STARTING_S
        self._leftovers_due = now + (_LEFTOVERS_OFTEN_S if is_starting else _LEFTOVERS_SELDOM_S)
        self._leftovers.look(process.pid for process in descendants())

    def _note(self, ranks: Iterable[int], events: Sequence[str], now: float) -> None:
        for rank in ranks:
            note_events(self._progress[rank], events, now)

    @property
    def _deadlines(self) -> Deadlines:
        """Where one rank speaks for all, the nodes of others hear no step: they wait longer."""
        limits = self._job.deadlines
        if not self._job.one_speaks_for_all or self._job.nodes == 1:
            return limits
        return replace(limits, first_step_s=_SILENT * (limits.start_s + limits.first_step_s))

    def _listener(self, rank: int) -> Callable[[bytes], None] | None:
        """Takes the output of a rank, where its lines are read."""
        return None if self._printed is None else partial(self._printed.feed, rank)

    @property
    def _look_every_s(self) -> float:
        """How often records are read: late by a small part of the shortest deadline."""
        deadlines = self._job.deadlines
        shortest = min(deadlines.start_s, deadlines.first_step_s, deadlines.step_s)
        return min(_LONGEST_LOOK_S, shortest / 10)

    def _look(self, timeout_s: float) -> None:
        """Sleeps until something happens, and moves the ranks' output to their logs."""
        self._beat()
        for key, _ in self._selector.select(max(timeout_s, 0.0)):
            if key.data == _OUTPUT:
                if not self._outputs[key.fd].pump():
                    self._selector.unregister(key.fd)
            elif key.data == _WAKE:
                self._note_signals(os.read(self._wake, 512))
            else:
                self.hear_owner(os.read(self._owner, 512))

    def _beat(self) -> None:
        """Tells the owner that this process still looks after the ranks."""
        now = time.monotonic()
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + HEARTBEAT_S
            with contextlib.suppress(BrokenPipeError):  # `hear_owner` learns that it is gone
                os.write(self._voice, b"\n")

    def _note_signals(self, numbers: bytes) -> None:
        if signal.SIGTERM in numbers:
            self._ask_to_end(EndKind.LOST, "the supervisor was told to end")

    def hear_owner(self, words: bytes) -> None:
        """Any word of the owner stops the trial; no words at all mean that it is gone."""
        if words:
            self._ask_to_end(EndKind.STOPPED, "the trial was stopped")
            return
        self._selector.unregister(self._owner)
        self._ask_to_end(EndKind.LOST, "the owner of the trial is gone")

    def _ask_to_end(self, kind: EndKind, reason: str) -> None:
        if self._asked_to_end is None:
            self._asked_to_end = NodeEnd(kind, reason)

    def _reap(self) -> None:
        """Takes the exit codes of ranks, and of orphans, which nobody asks for."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            for rank in self._starter.note_end(pid):
                self._exits[rank] = RankExit(rank, code, by_us=self._ending)
                if self._memory is not None:
                    self._memory.note_end(rank, usage)

    def _end_processes(self) -> list[psutil.Process]:
        self._leftovers.look(process.pid for process in descendants())
        self._reap()
        self._ending = True
        grace_s = self._job.deadlines.stop_grace_s
        if self._asked_to_end is not None and self._asked_to_end.kind is EndKind.LOST:
            grace_s = min(grace_s, OWNER_GONE_GRACE_S)

        def left() -> list[psutil.Process]:
            self._reap()
            return descendants()

        survivors = end_all(left, grace_s, GIVE_UP_S, pause=self._look)
        self._reap()
        if not survivors:
            self._leftovers.remove()
        for output in self._outputs.values():
            output.close()
        if self._printed is not None:
            self._printed.close()
        if self._memory is not None:
            self._memory.record(self._job.records(self._job.ranks.start))
        return survivors


def _speakers(job: NodeJob) -> list[int | None]:
    """Whose records a file holds, file by file: a rank's, or everyone's."""
    if not job.one_speaks_for_all:
        return list(job.ranks)
    return [None for _ in _record_files(job)]


def _record_files(job: NodeJob) -> list[Path]:
    own = [job.records(rank) for rank in job.ranks]
    return own if job.printed is None else [*own, job.printed_records]


def _printed_records(job: NodeJob) -> PrintedRecords | None:
    if job.printed is None:
        return None
    return PrintedRecords(
        job.printed_records,
        format_of(job.printed, "trainer.printed"),
        Batch(job.samples_per_step, job.tokens_per_step, job.world_size),
    )


def describe_exits(failed: Iterable[RankExit]) -> str:
    """The failed ranks in one sentence, such as "rank 1 exited with code 3"."""
    return "; ".join(
        f"rank {one.rank} was ended by {_signal_name(-one.code)}"
        if one.code < 0
        else f"rank {one.rank} exited with code {one.code}"
        for one in failed
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def detach() -> None:
    """Leaves the process that started this one, which sees its child exit at once."""
    if os.fork() > 0:
        os._exit(0)


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child ends or SIGTERM comes."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Handlers that do nothing, since ranks would inherit SIG_IGN.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    return reading


def main() -> None:
    """Runs the job that the owner writes to standard input."""
    detach()
    become_subreaper()
    wake = _wake_on_signals()
    owner, voice = sys.stdin.fileno(), sys.stdout.fileno()
    job, meeting, more = _read_job(owner)
    supervisor = Supervisor(job, starter_for(job.preload), owner, voice, wake)
    if more:
        supervisor.hear_owner(more)
    end = supervisor.run(meeting)
    try:
        sys.stdout.write(f"{end.to_json()}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # the owner is gone, and so is everything that it asked for


def _read_job(owner: int) -> tuple[NodeJob, Meeting, bytes]:
    """The two lines that the owner writes first, and what it may have said after them."""
    words = b""
    while words.count(b"\n") < 2:
        part = os.read(owner, 1 << 16)
        if not part:
            raise EOFError("the owner went before it had said what to run")
        words += part
    job, meeting, more = words.split(b"\n", maxsplit=2)
    return NodeJob.from_json(job.decode("ascii")), Meeting(**json.loads(meeting)), more
