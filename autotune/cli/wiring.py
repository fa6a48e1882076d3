"""Where decisions meet actions: the one module of `autotune` that imports `launch`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from autotune.certify.contest import ContestRules
from autotune.certify.results import Results
from autotune.certify.settings import CertifySettings
from autotune.config.compose import compose_config
from autotune.config.schema import Config
from autotune.config.typed import build
from autotune.errors import NoDevicesError, UserError
from autotune.measure.judge import JudgeSettings
from autotune.measure.racing import RaceRules
from autotune.measure.read import Voices
from autotune.measure.spread import RunSpread
from autotune.ports import Launcher, MeasurementPlan, Trainer
from autotune.predict.belief import CostBelief
from autotune.predict.cost_model import CostModel
from autotune.profile_plan import ProfilePlan
from autotune.search.guided.belief import Knowledge
from autotune.space.definition import Facts, SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.study.repeat import Repeat
from autotune.study.trial_record import TrialRecord
from autotune.sweep.plan import ProfilePlans, SweepPlan

# The trainer is asked about so many legal points beforehand, which takes well under a second.
_POINTS_ASKED = 1000


@dataclass(frozen=True)
class Problem:
    """A configuration that has been checked as a whole: nothing in it can be wrong input.

    knowledge: what is known of the space before anything is measured.
    """

    config: Config
    data: dict[str, Any]
    space: LegalSpace
    trainer: Trainer
    measurement: MeasurementPlan
    memory_limit_bytes: int
    knowledge: Knowledge

    @property
    def voices(self) -> Voices:
        """Whose records tell of a trial."""
        placement = self.config.cluster.placement
        return Voices(placement.world_size, placement.nodes, self.trainer.every_rank_records)

    @property
    def judge_settings(self) -> JudgeSettings:
        """What every trial is held against."""
        return JudgeSettings(
            world_size=self.config.cluster.placement.world_size,
            warmup_steps=self.measurement.warmup_steps,
            window_steps=self.measurement.window_steps,
            min_steps=self.config.measure.min_steps,
            memory_limit_bytes=self.memory_limit_bytes,
            spread=RunSpread(self.config.measure.run_spread),
            needs_peak=self.trainer.tells_peak_memory,
            device=self.config.cluster.placement.device,
            printed=self.config.trainer.printed,
        )

    @property
    def has_memory_gate(self) -> bool:
        """Whether points that are not expected to fit are left out."""
        gate = self.config.memory.gate
        return bool(self.config.search.sampler != "exhaustive") if gate is None else gate

    def results(self, records: Sequence[TrialRecord], repeats: Sequence[Repeat]) -> Results:
        """What runs of this problem come to."""
        return Results(records, repeats, self.space.baseline, self.certify_settings)

    @property
    def certify_settings(self) -> CertifySettings:
        """How much is measured again before the export."""
        certify = self.config.certify
        return CertifySettings(
            enabled=certify.enabled,
            finalists=certify.finalists,
            max_rechecks=certify.max_rechecks,
            loss_tolerance=certify.loss_tolerance,
            rules=ContestRules(certify.min_rounds, certify.max_rounds, certify.precision),
            spread=RunSpread(self.config.measure.run_spread),
        )

    @property
    def sweep_plan(self) -> SweepPlan:
        """What stays the same during a sweep."""
        config = self.config
        measure, profile = config.measure, config.profile
        return SweepPlan(
            search=config.search,
            placement=config.cluster.placement,
            deadlines=config.deadlines,
            measurement=self.measurement,
            judge=self.judge_settings,
            race=RaceRules(measure.min_steps, measure.precision, measure.race),
            certify=self.certify_settings,
            control_every=measure.control_every,
            profiles=ProfilePlans(profile.light, profile.full, profile.disk_budget_bytes),
        )


def compose_problem(overrides: tuple[str, ...], config_dir: Path | None) -> Problem:
    """Composes and checks a configuration. Raises UserError; writes and starts nothing."""
    composed = compose_config(overrides, config_dir)
    return _problem(composed.config, composed.data)


def kept_problem(data: dict[str, Any]) -> Problem:
    """The problem of a study, from the configuration in its `config.yaml`."""
    return _problem(build(Config, data), data)


def _problem(config: Config, data: dict[str, Any]) -> Problem:
    from launch.trainers.registry import make_trainer
    from launch.trainers.sources import Sources

    sources = Sources(config.trainer.root, config.trainer.sources)
    trainer = make_trainer(config, sources)
    config, data = _with_sources(config, data, sources.used)
    facts = facts_of(config, trainer)
    definition = SpaceDefinition.parse(config.space, facts)
    trainer.check({p.name: p.choices for p in definition.parameters})
    definition = definition.with_rules(trainer.rules, trainer.fixed)
    measure, world_size = config.measure, config.cluster.placement.world_size
    for key, plan in (("light", config.profile.light), ("full", config.profile.full)):
        if plan is not None:
            require_ranks(plan, world_size, f"profile.{key}.ranks")
    space = LegalSpace.build(definition)
    for point in (space.baseline, *space.points[:_POINTS_ASKED]):
        if refused := trainer.refusal(point, world_size):
            which = "the baseline" if point == space.baseline else "a legal point"
            raise UserError(
                f"the {trainer.name} trainer refuses {which} ({point}): {refused}; "
                "correct model.base, space.baseline, or the constraints of the space"
            )
    return Problem(
        config=config,
        data=data,
        space=space,
        trainer=trainer,
        measurement=trainer.plan(measure.warmup_steps, measure.min_steps, measure.max_steps),
        memory_limit_bytes=config.memory_limit_bytes,
        knowledge=_knowledge(config, space, facts, trainer.fixed),
    )


def _with_sources(
    config: Config, data: dict[str, Any], used: Mapping[str, str]
) -> tuple[Config, dict[str, Any]]:
    """The configuration with the user's files in it, so that a study is whole by itself."""
    if not used:
        return config, data
    trainer = replace(config.trainer, sources=dict(used))
    return (
        replace(config, trainer=trainer),
        {**data, "trainer": {**data["trainer"], "sources": dict(used)}},
    )


def facts_of(config: Config, trainer: Trainer) -> Facts:
    """What rules may read; what the trainer found in the user's files outdoes the model's YAML."""
    return {**config.facts, "model": {**config.model.dims, **trainer.dims}}


def _knowledge(
    config: Config, space: LegalSpace, facts: Facts, base: Mapping[str, Any]
) -> Knowledge:
    """The limit, and the cost model where the model's figures allow one. Raises UserError."""
    model = CostModel.of(space, facts, base)
    return Knowledge(config.memory_limit_bytes, None if model is None else CostBelief(model))


def require_ranks(plan: ProfilePlan, world_size: int, key: str) -> None:
    """Raises UserError for a profile of ranks that a trial does not have."""
    beyond = [rank for rank in plan.ranks if rank >= world_size]
    if beyond:
        raise UserError(
            f"{key}={list(plan.ranks)}: a trial has ranks 0 to {world_size - 1}, no rank "
            f"{beyond[0]}; give some of them, or [-1] for all"
        )


def probe(problem: Problem) -> dict[str, str]:
    """Versions and devices that the results depend on. Raises UserError."""
    from launch.environment import probe_environment

    config = problem.config
    found = probe_environment(
        config.trainer.python or sys.executable,
        config.cluster.placement.device,
        problem.trainer.needs,
        problem.trainer.versions,
        _setup(config.trainer.setup),
    )
    # The same machine may have another name tomorrow, as containers do.
    return {name: value for name, value in found.items() if name != "hostname"}


def check_devices(config: Config) -> str:
    """Says whether this machine, or the cluster, can hold a trial. Raises NoDevicesError.

    A local machine is looked at without starting Ray; a cluster is believed until the sweep
    joins it.
    """
    from launch.environment import local_devices

    wanted = config.cluster.devices_per_trial
    if config.cluster.address is not None:
        return f"devices: {wanted} a trial, of the Ray cluster at {config.cluster.address}"
    here = local_devices(config.cluster.placement.device)
    if config.cluster.nodes_per_trial > 1:
        raise NoDevicesError(
            f"cluster.nodes_per_trial={config.cluster.nodes_per_trial} needs a Ray cluster; "
            "give cluster.address=HOST:PORT, or cluster.nodes_per_trial=1"
        )
    fewer = f"cluster.devices_per_trial={here}, " if here else ""
    if here is not None and here < wanted:
        raise NoDevicesError(
            f"a trial needs {wanted} {config.cluster.device} devices, this machine has {here}; "
            f"give {fewer}another cluster.device, or cluster.address=HOST:PORT"
        )
    return f"devices: {wanted} {config.cluster.device} a trial, on this machine"


def look_ahead(problem: Problem, *, is_set_up: bool) -> list[str]:
    """What a person should know before a sweep costs time. Raises UserError for what ends it.

    is_set_up: setup scripts may run for it, if they have not; else their PATH is not known.
    """
    from launch.preflight import Room, preflight
    from launch.preflight_programs import look_at_programs

    config, trainer = problem.config, problem.trainer
    env = {**os.environ, **(_setup(config.trainer.setup) if is_set_up else {})}
    rooms = [Room(config.study_dir, "study.dir", config.profile.disk_budget_bytes)]
    is_local = config.cluster.address is None
    device = config.cluster.placement.device
    return [
        *look_at_programs(config.trainer, trainer, env, is_set_up=is_set_up, is_local=is_local),
        *preflight(rooms, device, os.environ, is_local=is_local),
    ]


def make_launcher(config: Config) -> Launcher:
    """Starts or joins Ray. Raises NoDevicesError."""
    from launch.cluster_settings import ClusterSettings
    from launch.ray_launcher import RayLauncher

    cluster = config.cluster
    settings = ClusterSettings(
        address=cluster.address,
        device=config.cluster.placement.device,
        devices_per_trial=cluster.devices_per_trial,
        nodes_per_trial=cluster.nodes_per_trial,
        max_concurrent_trials=cluster.max_concurrent_trials,
        wait_for_devices_s=cluster.wait_for_devices_s,
    )
    return RayLauncher(settings, dict(_setup(config.trainer.setup)))


@cache
def _setup(scripts: tuple[str, ...]) -> Mapping[str, str]:
    """What setup scripts add to the environment; they run once, for probe and ranks alike."""
    from launch.setup_environment import setup_environment

    return setup_environment(scripts)


@dataclass(frozen=True)
class Answer:
    """What a rank answered to a request for a profile. path: relative to the trial's folder."""

    path: str | None
    error: str | None


def ask_for_profile(trial_folder: Path, plan: ProfilePlan) -> str:
    """Asks the ranks of a running trial to profile their next steps; the request's id."""
    from launch.profile_request import request_profile

    return request_profile(trial_folder, plan)


def profile_answers(trial_folder: Path, request: str) -> list[Answer]:
    """What the ranks have answered so far."""
    from launch.profile_request import profile_answer

    return [Answer(one.path, one.error) for one in profile_answer(trial_folder, request)]
