"""`trainer.name` -> its adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autotune.config.schema import Config, TrainerConfig
from autotune.errors import UserError, did_you_mean
from autotune.ports import Trainer
from launch.trainers.command import CommandTrainer
from launch.trainers.mindspeed.fsdp2 import MindspeedFsdp2
from launch.trainers.mindspeed.megatron import MindspeedMegatron
from launch.trainers.reference import ReferenceTrainer
from launch.trainers.sources import Sources
from launch.trainers.variables import require_variables


def _reference(config: Config, sources: Sources) -> Trainer:
    return ReferenceTrainer(
        base=config.model.base,
        device=config.cluster.device,
        device_memory_bytes=config.cluster.device_memory_bytes,
        python=config.trainer.python,
    )


_MAKERS: Mapping[str, Callable[[Config, Sources], Trainer]] = {
    "reference": _reference,
    "command": CommandTrainer.load,
    "mindspeed_fsdp2": MindspeedFsdp2.load,
    "mindspeed_megatron": MindspeedMegatron.load,
    "mindspeed_megatron_fsdp2": MindspeedMegatron.load,
}
# Beside `name`, `python` and `sources`, which every trainer has.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "reference": ("setup",),
    "mindspeed_fsdp2": ("root", "commit", "setup", "env"),
    "mindspeed_megatron": ("root", "commit", "setup", "env"),
    "mindspeed_megatron_fsdp2": ("root", "commit", "setup", "env"),
    "command": (
        *("setup", "env", "command", "cwd", "processes"),
        *("patch", "printed", "window_steps", "memory"),
    ),
}


def make_trainer(config: Config, sources: Sources) -> Trainer:
    """The adapter that the configuration names. Raises UserError."""
    name = config.trainer.name
    if name not in _MAKERS:
        raise UserError(f"trainer.name={name!r}; {did_you_mean(name, _MAKERS)}")
    plain = TrainerConfig(name)
    for key in vars(plain):
        if key in ("name", "python", "sources", *_KEYS[name]):
            continue
        if getattr(config.trainer, key) != getattr(plain, key):
            raise UserError(
                f"trainer.{key}: the {name} trainer has no such key; it takes "
                f"{', '.join(f'trainer.{one}' for one in ('python', *_KEYS[name]))}"
            )
    if not sources.is_kept:
        require_variables(config.trainer.env)
    return _MAKERS[name](config, sources)
