"""The owner's side of a supervisor: what a node of the cluster does for a trial.

Runs inside a Ray actor, but knows nothing of Ray.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

import psutil

from autotune.ports import EndKind
from launch.device_check import DeviceCheck
from launch.device_environment import NodeUnfitError, node_environment
from launch.device_ledger import describe_unclean
from launch.leftovers import remove_noted
from launch.markers import ROLE, SUPERVISOR_ROLE, SWEEP, TRIAL
from launch.node_job import SILENCE_S, Meeting, NodeEnd, NodeJob
from launch.port_lease import PortLease
from launch.process_tree import end_all, marked

# -I -S: nothing of the user's Python setup, and no search for installed packages.
_FLAGS = ("-I", "-S", "-X", "utf8")
_CODE = "import sys; sys.path += {paths!r}; from launch.supervisor import main; main()"
_GIVE_UP_S = 20.0
_HCCL_PORTS = 32
_GRACES = 4
_LOOPBACK = "127.0.0.1"


class NodeWork:
    """Runs the ranks of one trial at a time on this node. Calls may come from several threads.

    place: the node's name, which no other has.
    """

    def __init__(self, place: str = "") -> None:
        self._place = place
        self._leases: list[PortLease] = []
        self._lock = threading.Lock()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._marker = ""
        self._stopped: set[str] = set()

    def lease_meeting(self, towards: str) -> Meeting:
        """A place on this node for the trial's ranks to meet, leased to the end of the next run.

        towards: a host that the other nodes of the trial reach as well.
        """
        return Meeting(address_towards(towards), self._lease(1))

    def run(self, job: NodeJob, meeting: Meeting) -> NodeEnd:
        """Runs the node's ranks; returns when none of their processes is left.

        Not begun where others hold memory of the devices, or an ended trial still does.
        """
        if not job.folder.is_dir():
            return NodeEnd(EndKind.LOST, _unseen_folder(job.folder))
        messages = job.folder / f"supervisor{job.node}.log"
        try:
            job = self._fit_to_node(job)
            floors, patience_s = job.floors.get(self._place, {}), _patience_s(job)
            devices = DeviceCheck(job.device, job.env, floors, patience_s)
            before = devices.await_clean()
            if not all(state.is_clean for state in before):
                reason = f"{socket.gethostname()}: {describe_unclean(before)}"
                return NodeEnd(EndKind.LOST, reason, (), self._place, before)
            with messages.open("wb") as errors:
                supervisor = _start_supervisor(job, errors)
        except (NodeUnfitError, OSError) as error:
            return NodeEnd(EndKind.LOST, f"{socket.gethostname()}: {error}")
        self._begin(supervisor, job, meeting)
        end = _await_end(supervisor, job)
        self._forget(supervisor)
        end = replace(end, place=self._place, devices=devices.await_clean())
        if messages.exists() and messages.stat().st_size == 0:
            messages.unlink()
        return end

    def stop(self, marker: str) -> None:
        """Ends the ranks of a launch; `run` then returns with `EndKind.STOPPED`.

        May come before `run`, and of another launch than the present one it means nothing.
        """
        with self._lock:
            self._stopped.add(marker)
            if self._supervisor is not None and self._marker == marker:
                _tell(self._supervisor, "stop\n")

    def _begin(self, supervisor: subprocess.Popen[bytes], job: NodeJob, meeting: Meeting) -> None:
        with self._lock:
            _tell(supervisor, f"{job.to_json()}\n{json.dumps(asdict(meeting))}\n")
            self._supervisor, self._marker = supervisor, job.marker
            if job.marker in self._stopped:
                _tell(supervisor, "stop\n")

    def _forget(self, supervisor: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._supervisor = None
            self._stopped.discard(self._marker)
            for pipe in (supervisor.stdin, supervisor.stdout):
                assert pipe is not None
                pipe.close()
        for lease in self._leases:
            lease.release()
        self._leases.clear()

    def _fit_to_node(self, job: NodeJob) -> NodeJob:
        users = _environment_of_parent()
        env = node_environment(job.env, os.environ, job.device, job.ranks_per_node, users)
        if job.device == "npu" and job.nodes == 1:
            # Trials side by side on one host would all listen on HCCL's default ports.
            env.setdefault("HCCL_IF_BASE_PORT", str(self._lease(_HCCL_PORTS)))
        return replace(job, env=env)

    def _lease(self, count: int) -> int:
        lease = PortLease.take(count)
        self._leases.append(lease)
        return lease.port


def _environment_of_parent() -> Mapping[str, str]:
    """What the process that started this one has: Ray's daemon, as a user started it here."""
    try:
        parent = psutil.Process().parent()
        return {} if parent is None else parent.environ()
    except psutil.Error:
        return {}


def _patience_s(job: NodeJob) -> float:
    """How long the devices' memory may take to come back: 20 s by default."""
    return _GRACES * job.deadlines.stop_grace_s


def address_towards(host: str) -> str:
    """The address of this host in the network through which it reaches `host`."""
    if host == _LOOPBACK:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # a datagram socket only looks up the route, nothing is sent
        address: str = probe.getsockname()[0]
        return address


def clean_up_after(marker: str, folder: Path, grace_s: float) -> list[int]:
    """Ends the processes of a launch on this node; returns those that survive SIGKILL.

    For launches whose supervisor was lost. folder: of the trial, with what the supervisor noted.
    grace_s: seconds that the processes may take after SIGTERM.
    """
    left = end_all(lambda: marked(TRIAL, marker), grace_s, _GIVE_UP_S)
    if not left:
        for noted in sorted(folder.glob("leftovers*.json")):
            remove_noted(noted)
    return [process.pid for process in left]


def supervisor_argv() -> list[str]:
    """The command that starts a supervisor with this interpreter."""
    ours = Path(__file__).parent.parent
    theirs = Path(psutil.__file__).parent.parent
    paths = list(dict.fromkeys([str(ours), str(theirs)]))
    return [sys.executable, *_FLAGS, "-c", _CODE.format(paths=paths)]


def _start_supervisor(job: NodeJob, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        supervisor_argv(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=_supervisor_environment(job),
        start_new_session=True,
    )


def _supervisor_environment(job: NodeJob) -> Mapping[str, str]:
    sweep = job.env.get(SWEEP, "")
    return {**os.environ, SWEEP: sweep, TRIAL: job.marker, ROLE: SUPERVISOR_ROLE}


def _tell(supervisor: subprocess.Popen[bytes], words: str) -> None:
    assert supervisor.stdin is not None
    try:
        supervisor.stdin.write(words.encode("ascii"))
        supervisor.stdin.flush()
    except BrokenPipeError:
        return  # the supervisor is gone; who waits for its end sees that too


def _await_end(supervisor: subprocess.Popen[bytes], job: NodeJob) -> NodeEnd:
    line = _last_words(supervisor)
    if line:
        supervisor.wait()  # for the process that the supervisor detached itself from, long gone
        return NodeEnd.from_json(line.decode("ascii"))
    left = clean_up_after(job.marker, job.folder, grace_s=0.0)
    if left:
        numbers = ", ".join(map(str, left))
        return NodeEnd(
            EndKind.LOST, f"the supervisor was lost; processes {numbers} survive SIGKILL"
        )
    supervisor.wait()
    if line is None:
        reason = f"the supervisor of the ranks said nothing for {SILENCE_S:g} s, and was ended"
        return NodeEnd(EndKind.LOST, reason)
    return NodeEnd(EndKind.LOST, "the supervisor of the ranks was lost")


def _last_words(supervisor: subprocess.Popen[bytes]) -> bytes | None:
    """The line with which the supervisor ends; none if it is gone, None if it is silent."""
    assert supervisor.stdout is not None
    pipe, said = supervisor.stdout.fileno(), b""
    while True:
        # A poll object, as select.select refuses the high descriptors of a busy process.
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        if not poll.poll(SILENCE_S * 1000):
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            return b""
        said += part
        *lines, said = said.split(b"\n")
        for line in lines:
            if line:
                return line


def _unseen_folder(folder: Path) -> str:
    return (
        f"{socket.gethostname()} does not see the trial's folder {folder}: "
        "study.dir must lie on a file system that every node mounts"
    )
