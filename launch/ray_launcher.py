"""Trials as Ray actors: one actor a node and trial, which owns the trial's devices there.

The only module that imports Ray.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import psutil
import ray
import ray.exceptions
from ray._private import ray_constants
from ray._private import worker as ray_worker
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

from autotune.ports import EndKind, Placement, TrialEnd, TrialRequest
from launch.capacity import actor_devices, require_room, resource_name, still_taken
from launch.cluster_settings import ClusterSettings
from launch.errors import ClusterLost
from launch.guard import SweepGuard
from launch.launched_trial import LaunchedTrial, combine
from launch.markers import SWEEP, launch_marker
from launch.node_job import NodeEnd, node_job
from launch.node_work import NodeWork, end_marked_processes
from launch.process_tree import is_alive
from launch.ray_session import (
    environment,
    local_ray_environment,
    make_session_folder,
    require_listener,
    sigterm_handler_kept,
)
from launch.trial_files import ask_to_finish, write_trial_files

_logger = logging.getLogger(__name__)

_OBJECT_STORE_BYTES = 128 << 20
_LOOK_S = 0.5
_DAEMONS = frozenset({"gcs_server", "raylet"})
_LOOPBACK = "127.0.0.1"
_OWNER_GONE_GRACE_S = 3.0
_ACTOR_CALLS = 4  # a run, a stop and a lease at the same time

_NodeActor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=_ACTOR_CALLS)(NodeWork)


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
        self._idle: list[tuple[Placement, Any]] = []
        self._session = _Session(settings, self._sweep)
        try:
            self._slots = self._count_slots()
        except BaseException:
            self._session.close()
            raise

    @property
    def slots(self) -> int:
        """How many trials the devices hold at once, at most `max_concurrent_trials`."""
        return self._slots

    def now(self) -> float:
        """Seconds since the epoch on this host's clock."""
        return time.time()

    def start(self, request: TrialRequest) -> None:
        """Begins a trial and returns.

        Raises `DevicesUnavailable` when the cluster has lost the nodes for it, and
        `ClusterLost` when Ray died and cannot be started again.
        """
        self._session.revive()
        _require_room(request.placement)
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

    def close(self) -> None:
        """Ends the running trials, and Ray where this launcher started it. May be repeated."""
        for trial in tuple(self._running):
            self.stop(trial)
        limits = [one.request.deadlines for one in self._running.values()]
        grace_s = max((one.stop_grace_s for one in limits), default=0.0)
        until = time.monotonic() + grace_s + _OWNER_GONE_GRACE_S
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
        env = {**self._environment, SWEEP: self._sweep}
        runs = {
            actor.run.remote(node_job(request, node, env, marker), meeting): node
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
            self._session.end_processes(trial.marker)
        trial.note_end(node, end)
        if end.kind is not EndKind.FINISHED:
            for other in trial.runs.values():
                actor = trial.actors[other]
                actor.stop.remote(trial.marker)
        if trial.is_over:
            self._finish(trial)

    def _finish(self, trial: LaunchedTrial) -> None:
        placement = trial.request.placement
        if self._session.is_shared or placement.nodes > 1 or trial.was_lost:
            _release(trial)
        else:  # the devices are ours anyway, and a new actor takes 0.4 s to start
            self._idle.append((placement, trial.actors[0]))
        del self._running[trial.request.trial]
        self._ended.append(combine(trial, self.now()))

    def _lose_all(self) -> None:
        """Ray itself has died: so have the actors, and the supervisors end their ranks."""
        self._session.stop()
        self._idle.clear()
        for trial in tuple(self._running.values()):
            self._session.end_processes(trial.marker)
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
        return min(_require_room(placement), settings.max_concurrent_trials)


class _Session:
    """The connection to Ray, and the guard of what was started for it."""

    def __init__(self, settings: ClusterSettings, sweep: str) -> None:
        self._settings = settings
        self._sweep = sweep
        self._daemons: list[psutil.Process] = []
        self._guard: SweepGuard | None = None
        self._starts = 0
        self._up = False
        if not self.is_shared:
            self._guard = SweepGuard.start(sweep, make_session_folder())
        self.revive()

    @property
    def is_shared(self) -> bool:
        """Whether the cluster is not ours."""
        return self._settings.address is not None

    @property
    def host(self) -> str:
        """The host that runs the cluster's head."""
        address: str = ray.get_runtime_context().gcs_address
        return address.rsplit(":", 1)[0]

    def revive(self) -> None:
        """Starts or joins Ray unless that is done. Raises `ClusterLost`."""
        if self._up:
            return
        ray_worker.print_to_stdstream = _log_message
        try:
            if self.is_shared:
                self._join()
            else:
                self._start()
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            self.close()
            where = f"at {self._settings.address}" if self.is_shared else "on this host"
            raise ClusterLost(
                f"no Ray {where}: {error}. See `ray status`, or leave cluster.address empty "
                "to have one started on this host"
            ) from error
        self._up = True

    def _join(self) -> None:
        require_listener(str(self._settings.address))
        with sigterm_handler_kept():
            ray.init(
                address=self._settings.address, log_to_driver=False, logging_level=logging.ERROR
            )

    def _start(self) -> None:
        assert self._guard is not None
        self._starts += 1
        folder = self._guard.folder / str(self._starts)
        folder.mkdir()
        settings = self._settings
        cpus = settings.devices_per_trial if settings.device == "cpu" else 1
        ray_constants.ENABLE_RAY_CLUSTER = False  # as RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0
        with environment(local_ray_environment(self._sweep, folder)), sigterm_handler_kept():
            ray.init(
                address="local",
                num_cpus=cpus * settings.max_concurrent_trials,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=str(folder),
            )
        children = psutil.Process().children()
        self._daemons = [one for one in children if one.name() in _DAEMONS]

    def has_died(self) -> bool:
        """Whether a process of our own Ray has died, without which it cannot go on.

        Asked before Ray notices: it takes 15 s for a raylet, and ends this very process
        60 s after the death of the GCS server.
        """
        return self._up and not all(map(is_alive, self._daemons))

    def end_processes(self, marker: str) -> None:
        """Ends what is left of a launch whose actor is gone, on every node that still lives."""
        if not self.is_shared:
            end_marked_processes(marker, _OWNER_GONE_GRACE_S)
            return
        tasks = [
            _end_marked_processes.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(marker, _OWNER_GONE_GRACE_S)
            for node in ray.nodes()
            if node["Alive"]
        ]
        done, _ = ray.wait(tasks, num_returns=len(tasks), timeout=30.0)
        del done  # a node that does not answer is gone, with all that ran on it

    def stop(self) -> None:
        """Leaves Ray, and ends it where it is ours."""
        if self._up:
            self._up = False
            ray.shutdown()

    def close(self) -> None:
        """Leaves Ray for good. May be repeated."""
        self.stop()
        if self._guard is not None:
            self._guard.close()


_end_marked_processes = ray.remote(num_cpus=0, max_retries=0)(end_marked_processes)


def _grouped(placement: Placement) -> tuple[Any, list[Any]]:
    """A placement group with one bundle a node, and the actors in it."""
    bundle = {resource_name(placement.device): float(placement.devices_per_node)}
    group = placement_group([bundle] * placement.nodes, strategy="STRICT_SPREAD")
    places = [PlacementGroupSchedulingStrategy(group, node) for node in range(placement.nodes)]
    options = actor_devices(placement)
    return group, [
        _NodeActor.options(**options, scheduling_strategy=place).remote() for place in places
    ]


def _require_room(placement: Placement) -> int:
    """How many trials of this kind the cluster holds, at least one or `DevicesUnavailable`."""
    return require_room(placement, [node["Resources"] for node in ray.nodes() if node["Alive"]])


def _log_message(message: Mapping[str, Any], **_: Any) -> None:
    """Takes the place of a function of Ray that prints messages of its daemons to stdout."""
    _logger.info("%s: %s", message.get("pid"), " ".join(message.get("lines", ())))


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
