"""The configuration as typed values.

Every field is a key that a person may set on the command line (docs/design.md,
contract "Command line"). `autotune.config.typed` checks the types, the classes below
check the meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.config.places import expanded
from autotune.config.quantities import MemoryLimit, parse_bytes
from autotune.errors import UserError, did_you_mean
from autotune.ports import Deadlines, DeviceType, Placement
from autotune.profile_plan import ProfilePlan

# Below this it is the limit of the example on a cpu that was left as it is.
_LEAST_ACCELERATOR_BYTES = 1 << 30

DEVICES: tuple[DeviceType, ...] = ("cpu", "cuda", "npu")


@dataclass(frozen=True)
class ModelConfig:
    """The model that is trained.

    name: names the default space and study. dims: what rules read as `model.*`.
    base: the native configuration of the trainer, without the tuned parameters.
    """

    name: str
    dims: dict[str, Any] = field(default_factory=dict)
    base: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainerConfig:
    """The training program; each takes those of the keys that it needs.

    name: of its adapter. python: the interpreter of the ranks, null for this one. root: the
    user's checkout of the program. commit: of that checkout, as far as it is given; `any` takes
    each. setup: shell scripts that make the environment of the ranks, such as CANN's set_env.sh.
    env: added to it. command, cwd: what to run and where, with {parameter} in the place of
    values. processes: `rank` or `node`, who starts the ranks. patch: keys to set in copies of
    files. printed: how the program's lines tell of its steps. window_steps: global batches after
    which its data repeat. memory: `records`, or `none` where nothing tells the peak memory.
    """

    name: str
    python: str | None = None
    root: str | None = None
    commit: str | None = None
    setup: tuple[str, ...] = ()
    env: dict[str, Any] = field(default_factory=dict)
    command: Any = None
    cwd: str | None = None
    processes: str = "rank"
    patch: dict[str, Any] = field(default_factory=dict)
    printed: Any = None
    window_steps: int = 1
    memory: str = "records"
    sources: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterConfig:
    """Where trials run.

    address: of a running Ray, null to start a local one. device_memory: bytes of one
    device, as an amount; on `cpu` it is also enforced. wait_for_devices_s: how long
    devices that are taken are waited for, in seconds.
    """

    address: str | None = None
    device: str = "cpu"
    devices_per_trial: int = 1
    nodes_per_trial: int = 1
    max_concurrent_trials: int = 1
    device_memory: str | None = None
    wait_for_devices_s: float = 600.0

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise UserError(f"cluster.device={self.device!r}; {did_you_mean(self.device, DEVICES)}")
        for name in ("devices_per_trial", "nodes_per_trial", "max_concurrent_trials"):
            _at_least("cluster", self, name, 1)
        if self.devices_per_trial % self.nodes_per_trial:
            raise UserError(
                f"cluster.devices_per_trial={self.devices_per_trial} cannot be dealt evenly over "
                f"cluster.nodes_per_trial={self.nodes_per_trial} nodes"
            )
        given = self.device_memory_bytes
        if given is not None and self.device != "cpu" and given < _LEAST_ACCELERATOR_BYTES:
            raise UserError(
                f"cluster.device_memory={self.device_memory} is no {self.device} device; give "
                f"cluster={self.device}, or its memory, such as cluster.device_memory=64GiB"
            )

    @property
    def placement(self) -> Placement:
        """The devices of one trial."""
        device: DeviceType = self.device  # type: ignore[assignment]  # checked above
        return Placement(
            self.nodes_per_trial, self.devices_per_trial // self.nodes_per_trial, device
        )

    @property
    def device_memory_bytes(self) -> int | None:
        """Bytes of one device where they are given."""
        if self.device_memory is None:
            return None
        return parse_bytes(self.device_memory, "cluster.device_memory")


@dataclass(frozen=True)
class SearchConfig:
    """How the space is searched.

    sampler: guided, tpe, gp, random, exhaustive, or a mapping with `_target_` for an Optuna
    sampler of the user's own.
    max_trials: finished trials of the study, over all resumes. max_hours: of this start,
    in hours, null for no bound. max_attempts: how often a point is launched that is lost
    to the infrastructure.
    """

    sampler: Any = "guided"
    max_trials: int = 24
    max_hours: float | None = None
    seed: int = 0
    max_attempts: int = 2

    def __post_init__(self) -> None:
        _at_least("search", self, "max_trials", 1)
        _at_least("search", self, "max_attempts", 1)
        if self.max_hours is not None and not self.max_hours > 0:
            raise UserError(f"search.max_hours={self.max_hours} must be more than 0, or null")


@dataclass(frozen=True)
class MemoryConfig:
    """What may be held, and whether that is looked at before a launch.

    limit: the most memory that any rank may hold; see `MemoryLimit.parse`. gate: leave out
    points that are not expected to fit; null: but for `exhaustive`, which records whole tables.
    """

    limit: Any = 0.92
    gate: bool | None = None

    def __post_init__(self) -> None:
        MemoryLimit.parse(self.limit)


@dataclass(frozen=True)
class MeasureConfig:
    """How long a trial runs.

    warmup_steps: first steps that are never scored; what is warm-up after them is found.
    min_steps, max_steps: bounds on scored steps, in whole passes over the trainer's data
    window. precision: a trial ends when half of the 95 % interval within its run is at most
    this share of its time. race: end trials that cannot win any more. control_every: trials
    after which the baseline runs again, to see a machine that drifts; 0 for never. run_spread:
    by what share separate runs of a point differ (standard deviation), assumed until repeats
    tell.
    """

    warmup_steps: int = 3
    min_steps: int = 8
    max_steps: int = 16
    precision: float = 0.03
    race: bool = True
    control_every: int = 12
    run_spread: float = 0.03

    def __post_init__(self) -> None:
        _at_least("measure", self, "warmup_steps", 0)
        _at_least("measure", self, "min_steps", 2)
        _at_least("measure", self, "control_every", 0)
        _share("measure", self, "precision", above=0.0)
        _share("measure", self, "run_spread")
        if self.max_steps < self.min_steps:
            raise UserError(
                f"measure.max_steps={self.max_steps} is below measure.min_steps={self.min_steps}; "
                f"give measure.max_steps={self.min_steps} or more"
            )


@dataclass(frozen=True)
class CertifyConfig:
    """How the winner is measured again before it is exported.

    enabled: false exports the fastest trial as it was measured once. finalists: points that at
    most run against the baseline, in turns. min_rounds, max_rounds: runs of each. precision:
    half of the 95 % interval of a ratio that is narrow enough to call two points equal.
    max_rechecks: points that are run once more since one bad moment may have cost them the
    lead, null for a quarter of the trials' device time. loss_tolerance: share by which a
    finalist's losses may differ from the baseline's.
    """

    enabled: bool = True
    finalists: int = 2
    min_rounds: int = 3
    max_rounds: int = 6
    precision: float = 0.05
    max_rechecks: int | None = None
    loss_tolerance: float = 0.01

    def __post_init__(self) -> None:
        _at_least("certify", self, "finalists", 1)
        _at_least("certify", self, "min_rounds", 3)
        _share("certify", self, "precision", above=0.0)
        _share("certify", self, "loss_tolerance", above=0.0)
        if self.max_rechecks is not None:
            _at_least("certify", self, "max_rechecks", 0)
        if self.max_rounds < self.min_rounds:
            raise UserError(
                f"certify.max_rounds={self.max_rounds} is below certify.min_rounds="
                f"{self.min_rounds}; give certify.max_rounds={self.min_rounds} or more"
            )


@dataclass(frozen=True)
class ProfileConfig:
    """What is profiled after the scored steps of a trial.

    light: for every trial, full: for the baseline and the finalists, null for no profile.
    disk_budget: what all profiles of a study may take.
    """

    light: ProfilePlan | None = None
    full: ProfilePlan | None = None
    disk_budget: str = "4GiB"

    def __post_init__(self) -> None:
        parse_bytes(self.disk_budget, "profile.disk_budget")

    @property
    def disk_budget_bytes(self) -> int:
        """As a number."""
        return parse_bytes(self.disk_budget, "profile.disk_budget")


@dataclass(frozen=True)
class StudyConfig:
    """Where results live.

    dir: the study folder. storage: an Optuna RDB URL, null for SQLite in `dir`.
    take_over: name or folder of an older study whose results are carried into a new one.
    """

    name: str
    dir: str
    storage: str | None = None
    take_over: str | None = None

    def __post_init__(self) -> None:
        if self.name in ("", ".", "..") or "/" in self.name or "\0" in self.name:
            raise UserError(
                f"study.name={self.name!r} is no name of a folder; give a name without /, or the "
                "folder itself as study.dir=DIR"
            )
        if not self.dir:
            raise UserError("study.dir is empty; give a folder, such as study.dir=studies/mine")


@dataclass(frozen=True)
class Config:
    """One composed configuration. `space` is checked by `autotune.space.definition`."""

    study: StudyConfig
    model: ModelConfig
    space: dict[str, Any]
    trainer: TrainerConfig
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    certify: CertifyConfig = field(default_factory=CertifyConfig)
    profile: ProfileConfig = field(default_factory=ProfileConfig)
    deadlines: Deadlines = field(default_factory=Deadlines)

    @property
    def study_dir(self) -> Path:
        """The study folder, absolute. Raises UserError."""
        return expanded(self.study.dir, "study.dir").absolute()

    @property
    def memory_limit_bytes(self) -> int:
        """The limit on peak memory of one device, in bytes. Raises UserError."""
        return MemoryLimit.parse(self.memory.limit).resolve(self.cluster.device_memory_bytes)

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What rules may read: `model.*` and `cluster.*`."""
        placement = self.cluster.placement
        return {
            "model": dict(self.model.dims),
            "cluster": {
                "world_size": placement.world_size,
                "nodes": placement.nodes,
                "devices_per_node": placement.devices_per_node,
                "device": placement.device,
            },
        }


def _at_least(group: str, node: object, name: str, least: int) -> None:
    value = getattr(node, name)
    if value < least:
        raise UserError(f"{group}.{name}={value} must be at least {least}")


def _share(group: str, node: object, name: str, above: float = -1.0) -> None:
    value = getattr(node, name)
    if not above < value < 1 or value < 0:
        least = "more than 0" if above == 0.0 else "at least 0"
        raise UserError(f"{group}.{name}={value} must be {least} and less than 1")
