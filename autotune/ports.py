"""Ports between the decisions (`autotune`) and the actions (`launch`).

A `Launcher` runs trials on devices, a `Trainer` says what a trial of one
training program is. The values that cross the border are frozen dataclasses:
the engine makes a `TrialRequest`, the launcher answers with a `TrialEnd`, and
what the ranks measured lies in the trial's folder as rank records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from autotune.profile_plan import ProfilePlan
from autotune.space.definition import Rule

DeviceType = Literal["cpu", "cuda", "npu"]


@dataclass(frozen=True)
class RankProgram:
    """What every rank of a trial executes.

    argv: program and arguments; `argv[0]` is the trainer's own interpreter.
    env: added to the environment that the launcher gives a rank.
    cwd: working directory of the ranks.
    files: text files that are written into the trial's folder before the start,
        by their name relative to it.
    preload: module that a launcher may import once a node, in one process from which the ranks
        are forked, each of which then runs `argv`, a `python -m MODULE`. None: each rank starts
        cold. For programs whose import starts no threads and initialises no device, reads no
        variable that differs between ranks, and which seed their generators themselves; what
        their libraries read when they are imported belongs into `env`.
    processes: who starts the ranks: `rank`, the launcher, a process each; or `node`, the program
        itself, of which the launcher starts one process a node.
    printed: how the program's lines tell of its steps, for `autotune.measure.logs.formats`: a
        format's name, or patterns; None where its ranks write records.
    samples_per_step, tokens_per_step: of a global batch, None where unknown; lines that tell only
        how many are done in a second give a step's time with them.
    watches_memory: the launcher records what each process and its children hold, in bytes.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    preload: str | None = None
    processes: Literal["rank", "node"] = "rank"
    printed: Any = None
    samples_per_step: int | None = None
    tokens_per_step: int | None = None
    watches_memory: bool = False

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("a rank program needs at least one word in argv")
        if self.preload is None:
            return
        if not all(part.isidentifier() for part in self.preload.split(".")):
            raise ValueError(f"preload={self.preload!r} is no module's name, such as torch.nn")
        if len(self.argv) < 3 or self.argv[1] != "-m":
            raise ValueError(
                f"with preload={self.preload!r} argv must be (PYTHON, '-m', MODULE, ...), "
                f"got {self.argv!r}"
            )


@dataclass(frozen=True)
class Placement:
    """The devices of one trial: `nodes` times `devices_per_node`, one rank each."""

    nodes: int
    devices_per_node: int
    device: DeviceType

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.devices_per_node < 1:
            raise ValueError(
                f"a placement needs at least one node and one device, got nodes={self.nodes}, "
                f"devices_per_node={self.devices_per_node}"
            )

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.nodes * self.devices_per_node


@dataclass(frozen=True)
class Deadlines:
    """How long a trial may go without progress, in seconds; progress means rank records.

    start_s: from the launch to the `start` record of every rank.
    first_step_s: from there to the first `step` record of every rank.
    step_s: between one `step` record and the next of the slowest rank, and from the
        last step to the end of the rank.
    stop_grace_s: between SIGTERM and SIGKILL when ranks are ended.
    """

    start_s: float = 600.0
    first_step_s: float = 1800.0
    step_s: float = 600.0
    stop_grace_s: float = 5.0

    def __post_init__(self) -> None:
        for name in ("start_s", "first_step_s", "step_s", "stop_grace_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0 seconds, got {getattr(self, name)}")


@dataclass(frozen=True)
class TrialRequest:
    """One launch of one point. `folder` exists and is empty but for what the engine put there."""

    trial: int
    attempt: int
    folder: Path
    program: RankProgram
    placement: Placement
    deadlines: Deadlines


class EndKind(StrEnum):
    """Why a trial's processes are gone."""

    FINISHED = "finished"  # every rank exited with 0
    RANK_FAILED = "rank_failed"  # a rank exited with another code or by a signal
    HUNG = "hung"  # a deadline passed without progress
    LOST = "lost"  # the node, the actor or the supervisor was lost
    STOPPED = "stopped"  # `Launcher.stop` was called


@dataclass(frozen=True)
class RankExit:
    """How a rank's process ended; `code` is negative for a signal, as in `subprocess`.

    by_us: the supervisor ended it (after another rank's failure, a deadline or a stop).
    """

    rank: int
    code: int
    by_us: bool = False


@dataclass(frozen=True)
class TrialEnd:
    """What the launcher knows when a trial's processes are gone.

    reason: one sentence for a person. started_at, ended_at: the launcher's clock in
    seconds since the epoch; their difference is the device time that the trial cost.
    """

    trial: int
    kind: EndKind
    reason: str
    started_at: float
    ended_at: float
    exits: tuple[RankExit, ...] = ()


class Launcher(Protocol):
    """Runs trials on devices. One suite of contract tests holds for every implementation.

    After `wait` has returned a trial's end, none of its processes are alive.
    """

    @property
    def slots(self) -> int:
        """How many trials the devices can hold at once; 0 while a cluster's nodes are gone."""
        ...

    def now(self) -> float:
        """Seconds since the epoch on the launcher's clock, which may be a virtual one."""
        ...

    def start(self, request: TrialRequest) -> None:
        """Begins a trial and returns; the caller keeps to `slots`."""
        ...

    def wait(self, timeout_s: float) -> Sequence[TrialEnd]:
        """The trials that ended, as soon as one has, or nothing after `timeout_s`."""
        ...

    def finish(self, trial: int) -> None:
        """Asks a running trial to score no more steps.

        A trainer that heeds it (`Trainer.heeds_finish`) makes the profile steps that were
        planned and ends by itself, with `EndKind.FINISHED`; others go on. May be repeated, and
        means nothing for a trial that does not run.
        """
        ...

    def stop(self, trial: int) -> None:
        """Ends a running trial; its end comes from `wait` with `EndKind.STOPPED`."""
        ...

    def suspect(self, trial: int, rank: int | None) -> None:
        """Holds a failure of an ended trial against the device of the rank.

        A device that fails twice is left out from then on. rank: None where nobody knows; then,
        and for a trial that is long over, it means nothing.
        """
        ...

    def notices(self) -> Sequence[str]:
        """What a person should know since the last call, such as that a device is left out."""
        ...

    def close(self) -> None:
        """Ends whatever still runs and releases all that the launcher started. May be repeated."""
        ...


@dataclass(frozen=True)
class MeasurementPlan:
    """How many steps a trial makes.

    warmup_steps: first steps that are not scored. measured_steps: scored steps after them, at
    most; `Launcher.finish` ends them earlier. window_steps: global batches in the data window:
    batch `step % window_steps` of it is trained at `step`; 1 where the trainer's data do not
    repeat. profile: what is collected after the scored steps, None for nothing.
    """

    warmup_steps: int
    measured_steps: int
    window_steps: int = 1
    profile: ProfilePlan | None = None

    def __post_init__(self) -> None:
        if self.warmup_steps < 0 or self.measured_steps < 1 or self.window_steps < 1:
            raise ValueError(f"a measurement needs steps, got {self}")

    @property
    def profile_steps(self) -> int:
        """Steps under a profiler after the scored ones."""
        return 0 if self.profile is None else self.profile.warmup_steps + self.profile.steps

    @property
    def total_steps(self) -> int:
        """Steps that a trial makes in all, at most."""
        return self.warmup_steps + self.measured_steps + self.profile_steps


@dataclass(frozen=True)
class ExportPaths:
    """Where an export lies. document: `best.yaml`. files: the folder of the trainer's files."""

    document: str
    files: str


class Trainer(Protocol):
    """A training program: point -> what to run, what to export. Pure, starts nothing."""

    @property
    def name(self) -> str:
        """As in the configuration group `trainer`."""
        ...

    @property
    def heeds_finish(self) -> bool:
        """Whether its ranks end by themselves when `Launcher.finish` asks for it."""
        ...

    @property
    def every_rank_records(self) -> bool:
        """Whether each rank writes records; else any of them, or printed lines, speak for all."""
        ...

    @property
    def tells_peak_memory(self) -> bool:
        """Whether a measurement without a peak is a failure."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """Python packages that `trainer.python` must have, such as torch."""
        ...

    @property
    def versions(self) -> Sequence[str]:
        """Packages whose versions results depend on, where they are installed."""
        ...

    @property
    def dims(self) -> Mapping[str, Any]:
        """What the user's own files say of the model, as `model.*`; they outdo the model's YAML."""
        ...

    @property
    def fixed(self) -> Mapping[str, Any]:
        """What the user's own files say for parameters that a space may vary, by parameter."""
        ...

    @property
    def rules(self) -> Sequence[Rule]:
        """What a point must fulfil for the trainer to run it, and to run it right (ADR 14)."""
        ...

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Raises UserError for a parameter or a choice that the trainer does not take.

        choices: every choice of every parameter of the space.
        """
        ...

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        """Why the trainer would not run the point on so many ranks, None where it would."""
        ...

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        """How many steps a trial makes at most, in whole passes over its data window.

        min_steps: scored steps that a measurement needs at least; max_steps: bound on them.
        Raises UserError where the two leave no whole pass.
        """
        ...

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The complete native configuration of the point, ready to train with."""
        ...

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """All that a run of these values depends on, defaults filled in, as plain data.

        Two that are equal are the same run. values: of parameters of any space. None where the
        trainer would not run them.
        """
        ...

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        """What the ranks of a measuring trial run, with `folder` as the trial's folder."""
        ...

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """Native files to train with, text by name, for `ExportPaths.files`; often none."""
        ...

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """What training with the point needs in the environment."""
        ...

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        """The words a person types to train with an exported configuration."""
        ...
