"""Where decisions meet actions: the one module of `autotune` that imports `launch`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.config.compose import compose_config
from autotune.config.schema import Config
from autotune.config.typed import build
from autotune.errors import NoDevicesError, UserError
from autotune.measure.judge import JudgeSettings
from autotune.ports import Launcher, MeasurementPlan, Trainer
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace

# The trainer is asked about so many legal points beforehand, which takes well under a second.
_POINTS_ASKED = 1000


@dataclass(frozen=True)
class Problem:
    """A configuration that has been checked as a whole: nothing in it can be wrong input."""

    config: Config
    data: dict[str, Any]
    space: LegalSpace
    trainer: Trainer
    measurement: MeasurementPlan
    memory_limit_bytes: int

    @property
    def judge_settings(self) -> JudgeSettings:
        """What every trial is held against."""
        return JudgeSettings(
            world_size=self.config.cluster.placement.world_size,
            warmup_steps=self.measurement.warmup_steps,
            window_steps=self.measurement.window_steps,
            min_steps=self.config.measure.min_steps,
            memory_limit_bytes=self.memory_limit_bytes,
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

    definition = SpaceDefinition.parse(config.space, config.facts)
    trainer = make_trainer(config)
    trainer.check({p.name: p.choices for p in definition.parameters})
    measure, world_size = config.measure, config.cluster.placement.world_size
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
    )


def probe(config: Config) -> dict[str, str]:
    """Versions and devices that the results depend on. Raises UserError."""
    from launch.environment import probe_environment

    found = probe_environment(
        config.trainer.python or sys.executable, config.cluster.placement.device
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
    return RayLauncher(settings)
