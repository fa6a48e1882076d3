"""Trials as Ray actors: one actor a node and trial, which owns the trial's devices there."""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import ray
import ray.exceptions
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    PlacementGroupSchedulingStrategy,
)

from autotune.ports import EndKind, Placement, TrialEnd, TrialRequest
from launch.capacity import actor_devices, require_room, resource_name, still_taken
from launch.cluster_settings import ClusterSettings
from launch.device_ledger import Device, DeviceLedger, describe_unclean
from launch.errors import DevicesUnavailable
from launch.launched_trial import LaunchedTrial, combine
from launch.markers import SWEEP, launch_marker
from launch.node_job import NodeEnd, node_job
from launch.node_work import NodeWork
from launch.ray_connection import OWNER_GONE_GRACE_S, RayConnection
from launch.ray_quarantine import Quarantine
from launch.trial_files import ask_to_finish, write_trial_files

_LOOK_S = 0.5
_LOOPBACK = "127.0.0.1"
_ACTOR_CALLS = 4  # a run, a stop and a lease at the same time

_SLOTS_HOLD_S = 2.0  # before nodes that have joined or left are looked for again
_LATE_SUSPECTS = 64  # ended trials whose devices are remembered


class _RayNodeWork(NodeWork):
    """The work of a node, by the name that Ray has for it."""

    def __init__(self) -> None:
        super().__init__(ray.get_runtime_context().get_node_id())


_NodeActor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=_ACTOR_CALLS)(
    _RayNodeWork
)


class RayLauncher:
    """Runs trials on the devices of a Ray cluster, its own on this host or a running one.

    Starts Ray, or joins it, when it is made; `close` ends what it started. A trial's ranks
    get the environment that this process had at that moment, what is added to it, and the
    trial's own.

    Raises `DevicesUnavailable` when the cluster can never hold a trial and `ClusterLost`
    when there is no cluster.
    """

    def __init__(self, settings: ClusterSettings, added: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._sweep = uuid.uuid4().hex
        self._added = dict(added or {})
        self._environment = {**os.environ, **self._added, SWEEP: self._sweep}
        self._running: dict[int, LaunchedTrial] = {}
        self._ended: list[TrialEnd] = []
        self._launches = itertools.count()
        self._clock = time.time(), time.monotonic()
        self._idle: list[tuple[Placement, Any]] = []
        self._session = RayConnection(settings, self._sweep)
        self._ledger = DeviceLedger()
        self._quarantine = Quarantine(settings.device)
        self._devices: dict[int, tuple[Device, ...]] = {}  # of trials that ended lately, by rank
        self._notices: list[str] = []
        self._without_slots_since: float | None = None
        self._counted_at = time.monotonic()
        try:
            self._slots = self._count_slots()
        except BaseException:
            self._session.close()
            raise

    @property
    def slots(self) -> int:
        """How many trials the devices hold at once, at most `max_concurrent_trials`."""
        now = time.monotonic()
        if self._session.is_up and now > self._counted_at + _SLOTS_HOLD_S:
            self._counted_at = now
            try:
                self._slots = self._count_slots()
            except DevicesUnavailable:
                self._slots = 0
        return self._slots

    def now(self) -> float:
        """Seconds since the epoch, by this host's clock when the sweep began.

        From then on as they pass: a clock that is set meanwhile changes no duration.
        """
        began, then = self._clock
        return began + time.monotonic() - then

    def start(self, request: TrialRequest) -> None:
        """Begins a trial and returns.

        Raises `DevicesUnavailable` when the cluster has lost the nodes for it, and
        `ClusterLost` when Ray died and cannot be started again.
        """
        self._session.revive()
        _require_room(request.placement, self._ledger)
        write_trial_files(request, self._added)
        self._running[request.trial] = self._submit(request)

    def wait(self, timeout_s: float) -> Sequence[TrialEnd]:
        """The trials that ended, as soon as one has, or nothing after `timeout_s` seconds.

        Raises `DevicesUnavailable` when a trial has waited for its devices for longer than
        `wait_for_devices_s`; it is not started any more.
        """
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            self._look(min(max(left, 0.0), _LOOK_S))
            self._require_slots()
            if self._ended or left <= 0:
                break
        ended, self._ended = tuple(self._ended), []
        return ended

    def finish(self, trial: int) -> None:
        """Leaves word in the trial's folder, which the ranks of a trainer that heeds it read."""
        if trial in self._running:
            ask_to_finish(self._running[trial].request.folder)

    def stop(self, trial: int) -> None:
        """Ends a running trial; of one that is not running there is nothing to end."""
        running = self._running.get(trial)
        if running is None or running.stopping:
            return
        running.stopping = True
        self._note_placement(running)
        for actor in running.actors:
            if running.placed:
                actor.stop.remote(running.marker)
            else:
                ray.kill(actor)

    def suspect(self, trial: int, rank: int | None) -> None:
        """Counts a failure against the device of the rank, where the launcher still knows it."""
        devices = self._devices.pop(trial, ())
        if rank is not None and rank < len(devices):
            self._leave_out(self._ledger.strike(devices[rank]))

    def notices(self) -> Sequence[str]:
        """What has happened to the cluster and its devices since the last call."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def close(self) -> None:
        """Ends the running trials, and Ray where this launcher started it. May be repeated."""
        for trial in tuple(self._running):
            self.stop(trial)
        limits = [one.request.deadlines for one in self._running.values()]
        grace_s = max((one.stop_grace_s for one in limits), default=0.0)
        until = time.monotonic() + grace_s + OWNER_GONE_GRACE_S
        while self._running and time.monotonic() < until:
            self._look(_LOOK_S)
        self._running.clear()
        self._session.close()

    def _submit(self, request: TrialRequest) -> LaunchedTrial:
        placement = request.placement
        group, actors = self._actors(placement)
        towards = _LOOPBACK if placement.nodes == 1 else self._session.host
        meeting = actors[0].lease_meeting.remote(towards)
        marker = launch_marker(self._sweep, next(self._launches))
        env, floors = {**self._environment, SWEEP: self._sweep}, self._ledger.floors()
        runs = {
            actor.run.remote(node_job(request, node, env, marker, floors), meeting): node
            for node, actor in enumerate(actors)
        }
        return LaunchedTrial(request, marker, self.now(), actors, meeting, runs, group)

    def _actors(self, placement: Placement) -> tuple[Any, list[Any]]:
        """A placement group, None for one node, and an actor for each node."""
        if placement.nodes > 1:
            return _grouped(placement)
        for idle, actor in self._idle:
            if idle == placement:
                self._idle.remove((idle, actor))
                return None, [actor]
        self._release_idle()  # they hold devices for trials of another size
        return None, [_NodeActor.options(**actor_devices(placement)).remote()]

    def _release_idle(self) -> None:
        for _, actor in self._idle:
            ray.kill(actor)
        self._idle.clear()

    def _look(self, timeout_s: float) -> None:
        """Takes note of what happens within a time."""
        if self._session.has_died():
            self._lose_all()
            return
        waiting = [ref for trial in self._running.values() for ref in trial.runs]
        waiting += [one.meeting for one in self._running.values() if not one.placed]
        if not waiting:
            time.sleep(timeout_s)
            return
        ready, _ = ray.wait(waiting, timeout=timeout_s)
        for trial in tuple(self._running.values()):
            self._note_placement(trial)
            for run in ready:
                if run in trial.runs:
                    self._note_run(trial, run)
        self._require_placement()

    def _note_placement(self, trial: LaunchedTrial) -> None:
        if not trial.placed and ray.wait([trial.meeting], timeout=0)[0]:
            trial.placed = True
            if self._session.is_shared:  # until now it may have waited for others' devices
                trial.started_at = self.now()

    def _note_run(self, trial: LaunchedTrial, run: Any) -> None:
        node = trial.runs.pop(run)
        end = _result(run)
        if end is None:
            end = NodeEnd(EndKind.LOST, "the Ray worker of the trial, or its node, was lost")
            self._session.end_processes(trial)
        trial.note_end(node, end)
        if end.kind is not EndKind.FINISHED:
            for other in trial.runs.values():
                actor = trial.actors[other]
                actor.stop.remote(trial.marker)
        if trial.is_over:
            self._finish(trial)
            self._note_devices(trial)

    def _finish(self, trial: LaunchedTrial) -> None:
        placement = trial.request.placement
        if self._session.is_shared or placement.nodes > 1 or trial.was_lost:
            _release(trial)
        else:  # the devices are ours anyway, and a new actor takes 0.4 s to start
            self._idle.append((placement, trial.actors[0]))
        del self._running[trial.request.trial]
        self._ended.append(combine(trial, self.now()))

    def _note_devices(self, trial: LaunchedTrial) -> None:
        """Remembers who had which device, and leaves out those that stay unclean."""
        ends = [trial.ends[node] for node in sorted(trial.ends)]
        used = tuple((end.place, state.name) for end in ends for state in end.devices)
        self._devices[trial.request.trial] = used
        while len(self._devices) > _LATE_SUSPECTS:
            del self._devices[next(iter(self._devices))]
        for end in ends:
            if any(not state.is_clean for state in end.devices):
                self._notices.append(describe_unclean(end.devices))
            self._leave_out(self._ledger.note(end.place, end.devices))

    def _leave_out(self, devices: Sequence[Device]) -> None:
        if not devices:
            return
        self._release_idle()
        for device in devices:
            self._notices.append(self._quarantine.leave_out(device))
        self._counted_at = -_SLOTS_HOLD_S  # count anew

    def _lose_all(self) -> None:
        """Ray itself has died: so have the actors, and the supervisors end their ranks."""
        self._session.stop()
        self._idle.clear()
        for trial in tuple(self._running.values()):
            self._session.end_processes(trial)
            for node in trial.runs.values():
                trial.note_end(node, NodeEnd(EndKind.LOST, "Ray on this host has died"))
            del self._running[trial.request.trial]
            self._ended.append(combine(trial, self.now()))

    def _require_placement(self) -> None:
        limit_s = self._settings.wait_for_devices_s
        for trial in tuple(self._running.values()):
            if trial.placed or self.now() < trial.started_at + limit_s:
                continue
            _release(trial)
            del self._running[trial.request.trial]
            raise still_taken(trial.request.placement, ray.available_resources(), limit_s)

    def _count_slots(self) -> int:
        settings = self._settings
        placement = Placement(settings.nodes_per_trial, settings.devices_per_node, settings.device)
        return min(_require_room(placement, self._ledger), settings.max_concurrent_trials)

    def _require_slots(self) -> None:
        """Raises `DevicesUnavailable` where a cluster has held no trial for too long."""
        if self.slots or self._running or not self._session.is_up:
            self._without_slots_since = None
            return
        now = time.monotonic()
        if self._without_slots_since is None:
            self._without_slots_since = now
        if now > self._without_slots_since + self._settings.wait_for_devices_s:
            self._count_slots()


def _grouped(placement: Placement) -> tuple[Any, list[Any]]:
    """A placement group with one bundle a node, and the actors in it."""
    bundle = {resource_name(placement.device): float(placement.devices_per_node)}
    group = placement_group([bundle] * placement.nodes, strategy="STRICT_SPREAD")
    places = [PlacementGroupSchedulingStrategy(group, node) for node in range(placement.nodes)]
    options = actor_devices(placement)
    return group, [
        _NodeActor.options(**options, scheduling_strategy=place).remote() for place in places
    ]


def _require_room(placement: Placement, ledger: DeviceLedger) -> int:
    """How many trials of this kind the cluster holds, at least one or `DevicesUnavailable`."""
    name = resource_name(placement.device)
    nodes = []
    for node in ray.nodes():
        if node["Alive"]:
            left = node["Resources"].get(name, 0) - ledger.left_out(node["NodeID"])
            nodes.append({**node["Resources"], name: left})
    return require_room(placement, nodes)


def _result(run: Any) -> NodeEnd | None:
    """What a node answered; None when it can answer no more."""
    try:
        end: NodeEnd = ray.get(run)
    except ray.exceptions.RayTaskError as error:
        return NodeEnd(EndKind.LOST, f"the work on a node failed: {error.cause!r}")
    except ray.exceptions.RayError:
        return None
    return end


def _release(trial: LaunchedTrial) -> None:
    """Gives the trial's devices back to the cluster."""
    for actor in trial.actors:
        ray.kill(actor)
    if trial.group is not None:
        remove_placement_group(trial.group)
