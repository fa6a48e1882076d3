"""`trainer.name` -> its adapter."""

from __future__ import annotations

from autotune.config.schema import Config
from autotune.errors import UserError, did_you_mean
from autotune.ports import Trainer
from launch.trainers.reference import ReferenceTrainer

_NAMES = ("reference",)


def make_trainer(config: Config) -> Trainer:
    """The adapter that the configuration names. Raises UserError."""
    if config.trainer.name == "reference":
        return ReferenceTrainer(
            base=config.model.base,
            device=config.cluster.device,
            device_memory_bytes=config.cluster.device_memory_bytes,
            python=config.trainer.python,
        )
    raise UserError(
        f"trainer.name={config.trainer.name!r}; {did_you_mean(config.trainer.name, _NAMES)}"
    )
