"""What one node does for a trial, and what came of it: passed as JSON to and from a supervisor."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.ports import Deadlines, DeviceType, EndKind, RankExit, TrialRequest
from launch.device_ledger import DeviceState
from launch.markers import TRIAL

HEARTBEAT_S = 2.0
"""How often a supervisor says that it is alive, by an empty line."""

SILENCE_S = 90.0
"""After so long without a word a supervisor is lost: stopped, or waiting for a dead file system."""


@dataclass(frozen=True)
class NodeJob:
    """The ranks of one trial on one node.

    env: the complete environment of a rank, but for what differs from rank to rank
        and where the ranks meet.
    marker: value of `markers.TRIAL`, by which the trial's processes are found.
    node: number of this node in the trial, from 0.
    ranks_per_node: as many ranks on every node.
    preload: module that is imported once for all ranks, None to start each rank cold.
    processes, printed, samples_per_step, tokens_per_step, watches_memory: see `RankProgram`.
    floors: bytes in use of devices on which nothing runs, by place and device.
    """

    folder: Path
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    marker: str
    device: DeviceType
    node: int
    nodes: int
    ranks_per_node: int
    deadlines: Deadlines
    preload: str | None = None
    processes: Literal["rank", "node"] = "rank"
    printed: Any = None
    samples_per_step: int | None = None
    tokens_per_step: int | None = None
    watches_memory: bool = False
    floors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """Number of ranks over all nodes."""
        return self.nodes * self.ranks_per_node

    @property
    def ranks(self) -> range:
        """The ranks of this node."""
        first = self.node * self.ranks_per_node
        return range(first, first + self.ranks_per_node)

    @property
    def started(self) -> range:
        """The ranks that are started here; a program that starts its own counts as its first."""
        return self.ranks if self.processes == "rank" else self.ranks[:1]

    @property
    def one_speaks_for_all(self) -> bool:
        """Whether a step that any process tells of is a step of all."""
        return self.processes == "node" or self.printed is not None

    @property
    def leftovers(self) -> Path:
        """Where it is noted what the ranks may leave behind (`launch.leftovers`)."""
        return self.folder / f"leftovers{self.node}.json"

    @property
    def printed_records(self) -> Path:
        """What the processes' lines said, as records."""
        return self.folder / f"printed{self.node}.jsonl"

    def records(self, rank: int) -> Path:
        """Where a rank writes its records."""
        return self.folder / f"rank{rank}.jsonl"

    def log(self, rank: int) -> Path:
        """Where a rank's output goes."""
        return self.folder / f"rank{rank}.log"

    def to_json(self) -> str:
        """One line of ASCII; bytes of the environment that are no UTF-8 survive."""
        values = {**asdict(self), "folder": str(self.folder), "cwd": str(self.cwd)}
        return json.dumps({**values, "env": dict(self.env)})

    @classmethod
    def from_json(cls, line: str) -> NodeJob:
        """The reverse of `to_json`."""
        values: dict[str, Any] = json.loads(line)
        values["folder"] = Path(values["folder"])
        values["cwd"] = Path(values["cwd"])
        values["argv"] = tuple(values["argv"])
        values["deadlines"] = Deadlines(**values["deadlines"])
        return cls(**values)


def node_job(
    request: TrialRequest,
    node: int,
    env: Mapping[str, str],
    marker: str,
    floors: Mapping[str, Mapping[str, int]] | None = None,
) -> NodeJob:
    """What one node of a trial's placement does.

    env: the sweep's environment, to which the program's own is added: its PYTHONPATH in front of
    the one that is there, since setup scripts such as CANN's make one too.
    """
    return NodeJob(
        folder=request.folder.absolute(),
        argv=request.program.argv,
        cwd=request.program.cwd.absolute(),
        env={**env, **request.program.env, **_python_path(env, request.program.env), TRIAL: marker},
        marker=marker,
        device=request.placement.device,
        node=node,
        nodes=request.placement.nodes,
        ranks_per_node=request.placement.devices_per_node,
        deadlines=request.deadlines,
        preload=request.program.preload,
        processes=request.program.processes,
        printed=request.program.printed,
        samples_per_step=request.program.samples_per_step,
        tokens_per_step=request.program.tokens_per_step,
        watches_memory=request.program.watches_memory,
        floors=floors or {},
    )


def _python_path(env: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The folders of both, each once."""
    if "PYTHONPATH" not in env or "PYTHONPATH" not in added:
        return {}
    folders = [*added["PYTHONPATH"].split(os.pathsep), *env["PYTHONPATH"].split(os.pathsep)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, folders)))}


@dataclass(frozen=True)
class Meeting:
    """Where the ranks of a trial meet: MASTER_ADDR and MASTER_PORT."""

    address: str
    port: int


@dataclass(frozen=True)
class NodeEnd:
    """Why the ranks of one node are gone.

    reason: one sentence for a person. place: the node, by a name that no other has. devices: that
    the ranks had, in the order of the ranks, as they are now; none on `cpu`.
    """

    kind: EndKind
    reason: str
    exits: tuple[RankExit, ...] = ()
    place: str = ""
    devices: tuple[DeviceState, ...] = ()

    def to_json(self) -> str:
        """One line of ASCII."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> NodeEnd:
        """The reverse of `to_json`."""
        values = json.loads(line)
        exits = tuple(RankExit(**one) for one in values["exits"])
        devices = tuple(DeviceState(**one) for one in values["devices"])
        return cls(EndKind(values["kind"]), values["reason"], exits, values["place"], devices)
