"""The connection of a sweep to Ray: a Ray of its own on this host, or a running cluster."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from typing import Any

import psutil
import ray
import ray.exceptions
from ray._private import ray_constants
from ray._private import worker as ray_worker
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from launch.cluster_settings import ClusterSettings
from launch.errors import ClusterLost
from launch.guard import SweepGuard, sweep_processes
from launch.launched_trial import LaunchedTrial
from launch.node_work import clean_up_after
from launch.process_tree import is_alive, signal_all
from launch.ray_session import (
    environment,
    local_ray_environment,
    require_listener,
    sigterm_handler_kept,
)
from launch.session_folder import SessionFolder

_logger = logging.getLogger(__name__)

# Ray itself raises a bare Exception where a daemon dies while it starts (`ray/_private/node.py`).
_RAY_FAILS = (Exception,)
_STARTS = 3

_OBJECT_STORE_BYTES = 128 << 20
_DAEMONS = frozenset({"gcs_server", "raylet"})
OWNER_GONE_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL for ranks whose owner is gone, in seconds."""


class RayConnection:
    """The connection to Ray, and the guard of what was started for it."""

    def __init__(self, settings: ClusterSettings, sweep: str) -> None:
        self._settings = settings
        self._sweep = sweep
        self._daemons: list[psutil.Process] = []
        self._guard: SweepGuard | None = None
        self._folder: SessionFolder | None = None
        self._starts = 0
        self._up = False
        if not self.is_shared:
            self._folder = SessionFolder()
            self._guard = SweepGuard.start(sweep, self._folder.path)
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
                self._start_patiently()
        except _RAY_FAILS as error:
            self.close()
            where = f"at {self._settings.address}" if self.is_shared else "on this host"
            raise ClusterLost(
                f"no Ray {where}: {error}. See `ray status` (a cluster that asks for a token needs "
                "RAY_AUTH_MODE=token), or leave cluster.address empty to have one started here"
            ) from error
        self._up = True

    def _join(self) -> None:
        require_listener(str(self._settings.address))
        with sigterm_handler_kept():
            ray.init(
                address=self._settings.address, log_to_driver=False, logging_level=logging.ERROR
            )

    def _start_patiently(self) -> None:
        """Starts Ray, again where one of its processes dies meanwhile."""
        for attempt in range(1, _STARTS + 1):
            try:
                self._start()
            except _RAY_FAILS as error:
                self._end_half_started()
                if attempt == _STARTS:
                    raise
                _logger.warning("Ray did not start (%s); trying again", error)
            else:
                return

    def _end_half_started(self) -> None:
        """No trial runs while Ray starts, so that all that carries our mark is Ray's."""
        assert self._guard is not None
        ray.shutdown()
        signal_all(sweep_processes(self._sweep, self._guard.folder), signal.SIGKILL)

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

    @property
    def is_up(self) -> bool:
        """Whether Ray is there."""
        return self._up

    def end_processes(self, trial: LaunchedTrial) -> None:
        """Ends what is left of a launch whose actor is gone, on every node that still lives."""
        marker, folder = trial.marker, trial.request.folder.absolute()
        if not self.is_shared:
            clean_up_after(marker, folder, OWNER_GONE_GRACE_S)
            return
        tasks = [
            _clean_up_after.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(marker, folder, OWNER_GONE_GRACE_S)
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
        if self._folder is not None:
            self._folder.release()


_clean_up_after = ray.remote(num_cpus=0, max_retries=0)(clean_up_after)


def _log_message(message: Mapping[str, Any], **_: Any) -> None:
    """Takes the place of a function of Ray that prints messages of its daemons to stdout."""
    _logger.info("%s: %s", message.get("pid"), " ".join(message.get("lines", ())))
