"""What is known of a launch script once it has been read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from launch.trainers.shell.arguments import Options

TORCH_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
"""Launchers of PyTorch: https://docs.pytorch.org/docs/stable/elastic/run.html."""

_PORT = re.compile(r"(?P<host>.*?)(?::(?P<port>\d+))?")


@dataclass(frozen=True)
class Sourced:
    """A script that the launch script sources, with the arguments given to it.

    path: as the script says, relative to `folder`.
    """

    path: str
    arguments: tuple[str, ...]
    folder: str
    line: int


@dataclass(frozen=True)
class Exported:
    """A variable that goes to the environment from here on."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Unset:
    """A variable that is taken away."""

    name: str
    line: int


@dataclass(frozen=True)
class Prepared:
    """A command that changes what the script's commands start with: `conda activate`, `ulimit`."""

    words: tuple[str, ...]
    line: int


Step = Sourced | Exported | Unset | Prepared
"""What prepares the environment, in the order in which it happens."""


@dataclass(frozen=True)
class Skipped:
    """A command that was not run. other_script: the shell script that it would start."""

    line: int
    text: str
    other_script: str | None = None


@dataclass(frozen=True)
class Doubt:
    """A place of a launch whose text is not known.

    place: the option or, in words, what else. variable, line, source: where the trouble begins,
    such as `NNODES` on line 25 by `$(wc -l hosts)`. why: follows "since". is_layout: it says no
    more than where the ranks run. export: the exported variable that it is about.
    """

    place: str
    variable: str | None
    line: int
    source: str
    why: str
    is_layout: bool = False
    export: str | None = None


@dataclass(frozen=True)
class LaunchCommand:
    """One start of a training program.

    launcher: `torchrun`, `torch.distributed.run`, `torch.distributed.launch`, `msrun`,
    `deepspeed` or `accelerate`. launcher_command: the words that start it. wrapper: words before
    those, such as `numactl -C 0-31`. program: a file, or a module where `is_module`.
    environment: what the script adds to the environment, exports and `NAME=value torchrun`.
    folder: where it starts. steps: how the environment came about. logs: files that get the
    output. live: shell text within the words that is to be expanded when the command is run,
    such as `$(date +%F)`. doubts: what is not known of it. condition: the tests whose answers
    are not known and that decide whether it starts.
    """

    line: int
    launcher: str
    launcher_command: tuple[str, ...]
    launcher_arguments: tuple[str, ...]
    program: str
    arguments: tuple[str, ...]
    is_module: bool = False
    wrapper: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    steps: tuple[Step, ...] = ()
    logs: tuple[str, ...] = ()
    live: frozenset[str] = frozenset()
    doubts: tuple[Doubt, ...] = ()
    condition: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The whole command."""
        return (
            *self.wrapper,
            *self.launcher_command,
            *self.launcher_arguments,
            *(("-m",) if self.is_module else ()),
            self.program,
            *self.arguments,
        )

    @property
    def nproc_per_node(self) -> int | None:
        """Processes on each node, None where it is no number or not known."""
        return _whole_number(self.launcher_option("nproc_per_node", "local_worker_num"))

    @property
    def nnodes(self) -> int | None:
        """Nodes; None where the launcher is given a range of them, or it is not known."""
        workers = _whole_number(self.launcher_option("worker_num"))
        if workers and self.nproc_per_node:
            return workers // self.nproc_per_node
        return _whole_number(self.launcher_option("nnodes"))

    @property
    def node_rank(self) -> int | None:
        """The number of this node, from 0."""
        return _whole_number(self.launcher_option("node_rank"))

    @property
    def master_addr(self) -> str | None:
        """Where the ranks meet."""
        host = self.launcher_option("master_addr")
        return host if host is not None else self._rendezvous["host"]

    @property
    def master_port(self) -> int | None:
        """The port there."""
        port = self.launcher_option("master_port")
        return _whole_number(port if port is not None else self._rendezvous["port"])

    def launcher_option(self, *names: str) -> str | None:
        """The value of one of the launcher's options, named without dashes and with `_`."""
        for option in reversed(Options.parse(self.launcher_arguments).items):
            if option.name and option.values and plain_name(option.name) in names:
                return option.values[0]
        return None

    @property
    def _rendezvous(self) -> Mapping[str, str | None]:
        match = _PORT.fullmatch(self.launcher_option("rdzv_endpoint") or "")
        assert match is not None
        return {"host": match["host"] or None, "port": match["port"]}


@dataclass(frozen=True)
class Ended:
    """Where a script ends before its last line. said: what it printed last."""

    line: int
    why: str
    said: str = ""


@dataclass(frozen=True)
class ScriptReading:
    """A script as it was read.

    name: the script's. exported: what it adds to the environment. variables: as they are at its
    end; arrays as shell words. sourced: scripts that it sources and that were not read. written:
    files that it would write, by path, where their whole text is known. skipped: commands that
    were not run. launches: starts of training programs.
    """

    name: str
    exported: Mapping[str, str]
    variables: Mapping[str, str]
    sourced: tuple[str, ...]
    written: Mapping[str, str]
    skipped: tuple[Skipped, ...]
    launches: tuple[LaunchCommand, ...]
    ended: Ended | None = None


def plain_name(option: str) -> str:
    """An option's name without dashes before it and with `_` within: torchrun knows both."""
    return option.lstrip("-").replace("-", "_")


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
