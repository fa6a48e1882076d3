"""A sweep over simulated trials: real study, real sampler, virtual devices and clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autotune.certify.settings import CertifySettings
from autotune.config.schema import SearchConfig
from autotune.measure.judge import JudgeSettings
from autotune.measure.racing import RaceRules
from autotune.ports import (
    Deadlines,
    EndKind,
    ExportPaths,
    MeasurementPlan,
    Placement,
    RankExit,
    RankProgram,
    TrialRequest,
)
from autotune.profile_plan import ProfilePlan
from autotune.search.factory import make_sampler
from autotune.search.gate import MemoryGatekeeper
from autotune.search.guided.belief import Knowledge
from autotune.space.definition import Rule
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.paths import StudyPaths
from autotune.study.profiles import ProfileBudget
from autotune.study.repeat import FIRST_LAUNCH, Repeat
from autotune.study.study import Study
from autotune.study.trial_record import TrialRecord
from autotune.sweep.bench import Bench as Devices
from autotune.sweep.loop import Sweep, SweepEnd
from autotune.sweep.plan import ProfilePlans, SweepPlan
from autotune.sweep.progress import Progress, RunningTrial
from autotune.sweep.runner import Runner
from launch.simulated import SimulatedLauncher, SimulatedTrial

RANKS = 2
PLAN = MeasurementPlan(warmup_steps=1, measured_steps=4)
LIMIT = 1000


@dataclass(frozen=True)
class PlainTrainer:
    """A trainer whose program says which point it is.

    plans: the profile that was planned, by the number of the launch.
    """

    name: str = "plain"
    heeds_finish: bool = True
    every_rank_records: bool = True
    tells_peak_memory: bool = True
    needs: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    dims: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    plans: dict[int, ProfilePlan | None] = field(default_factory=dict)

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Takes anything."""

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        return None

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        return PLAN

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return {"point": dict(point)}

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return dict(values)

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        number = int(folder.name) + (FIRST_LAUNCH if folder.parent.name == "repeats" else 0)
        self.plans[number] = plan.profile
        return RankProgram(argv=("train", Point(point).key), cwd=folder)

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        return {}

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        return {}

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        return ("train", exported.document)


@dataclass
class Silent:
    """A listener that remembers."""

    said_lines: list[str] = field(default_factory=list)
    moments: list[Progress] = field(default_factory=list)
    launched: list[RunningTrial] = field(default_factory=list)

    def started(self, trial: RunningTrial) -> None:
        self.launched.append(trial)

    def finished(self, record: TrialRecord, progress: Progress) -> None:
        self.moments.append(progress)

    def repeated(self, repeat: Repeat, progress: Progress) -> None:
        self.moments.append(progress)

    def moment(self, progress: Progress) -> None:
        self.moments.append(progress)

    def said(self, message: str) -> None:
        self.said_lines.append(message)


def time_of(point: Mapping[str, Any]) -> float:
    """Seconds a batch: larger micro-batches are faster, splitting costs."""
    return 1.0 / point["micro_batch_size"] + 0.1 * point["sp_degree"]


def peak_of(point: Mapping[str, Any]) -> int:
    """Bytes: the fastest points are over the limit of 1000, and the largest over 1500."""
    return 450 * point["micro_batch_size"] // point["sp_degree"] + 100


def measured(point: Mapping[str, Any]) -> SimulatedTrial:
    """A run to the end, with an out-of-memory error above 1500 bytes."""
    peak, time_s = peak_of(point), time_of(point)
    steps = [
        {"event": "step", "step": n, "time_s": time_s, "peak_reserved_bytes": peak}
        for n in range(PLAN.total_steps)
    ]
    if peak > 1500:
        error = {"event": "error", "kind": "oom", "message": "no memory"}
        return SimulatedTrial(
            3.0,
            [[{"event": "start"}, error]] * RANKS,
            EndKind.RANK_FAILED,
            "rank 0 exited with 1",
            (RankExit(0, 1), RankExit(1, 1)),
        )
    duration = 5.0 + time_s * PLAN.total_steps
    return SimulatedTrial(duration, [[{"event": "start"}, *steps, {"event": "end"}]] * RANKS)


Behave = Callable[[Point, TrialRequest], SimulatedTrial]


@dataclass
class Bench:
    """Everything of one sweep, to run and to look at. `run` may be called again to resume."""

    paths: StudyPaths
    space: LegalSpace
    listener: Silent = field(default_factory=Silent)
    launcher: SimulatedLauncher | None = None
    study: Study | None = None
    # The search alone, unless a test asks for more.
    race: RaceRules = field(default_factory=lambda: RaceRules(4, 0.03, drop_losers=False))
    certify: CertifySettings = field(default_factory=lambda: CertifySettings(enabled=False))
    control_every: int = 0
    storage: str | None = None
    profiles: ProfilePlans = field(default_factory=ProfilePlans)
    trainer: PlainTrainer = field(default_factory=PlainTrainer)
    # Without the gate, unless a test asks for it.
    gate: bool = False
    first: list[Point] = field(default_factory=list)
    tick_s: float = 0.25

    def open(self, environment: Mapping[str, str] | None = None) -> Study:
        identity = Identity({"space": 1, "cluster": {}}, dict(environment or {"torch": "2.13"}))
        return Study.open("bench", self.paths, self.space, identity, {}, LIMIT, self.storage)

    def run(
        self,
        behave: Behave = lambda point, request: measured(point),
        slots: int = 1,
        sampler: Any = "tpe",
        **search: Any,
    ) -> SweepEnd:
        self.study = self.open()
        self.launcher = SimulatedLauncher(
            lambda request: behave(self._point_of(request), request), slots
        )
        judge = JudgeSettings(RANKS, PLAN.warmup_steps, 1, 4, LIMIT)
        plan = SweepPlan(
            SearchConfig(**search),
            Placement(1, RANKS, "cpu"),
            Deadlines(),
            PLAN,
            judge,
            self.race,
            self.certify,
            self.control_every,
            self.profiles,
        )
        runner = Runner(self.launcher, self.trainer, plan.placement, plan.deadlines, judge)
        budget = ProfileBudget(self.paths, plan.profiles.budget_bytes)
        encoding, knowledge = self.study.encoding, Knowledge(LIMIT)
        self.sweep = Sweep(
            study=self.study,
            bench=Devices(self.study, runner, plan, self.listener, budget),
            launcher=self.launcher,
            sampler=make_sampler(sampler, encoding, 0, knowledge),
            plan=plan,
            knowledge=knowledge,
            listener=self.listener,
            changed=lambda: None,
            first=self.first,
            gatekeeper=MemoryGatekeeper(encoding, knowledge, seed=0) if self.gate else None,
            tick_s=self.tick_s,
        )
        return self.sweep.run()

    def _point_of(self, request: TrialRequest) -> Point:
        point = self.space.find(json.loads(request.program.argv[1]))
        assert point is not None, "only legal points are launched"
        return point

    @property
    def records(self) -> list[TrialRecord]:
        assert self.study is not None
        return self.study.records


@pytest.fixture
def bench(tmp_path: Path, space: LegalSpace) -> Bench:
    return Bench(StudyPaths(tmp_path / "50% a=b,c#1 调优" / "bench"), space)
