"""What a measuring trial changes in a native FSDP2 YAML besides its point."""

from __future__ import annotations

from typing import Any

from autotune.ports import MeasurementPlan
from launch.trainers.documents import YamlDocument, key_path
from launch.trainers.mindspeed.fsdp2_settings import value_at

# Null is refused for these, and an empty text makes the trainer leave the weights as they
# happen to lie in memory; without the keys it initialises them, and saves nothing.
_LEFT_OUT = (
    "training.load",
    "training.save",
    "training.train_epochs",  # would outdo train_iters
    "training.lora.pretrained_lora_path",
)


def measuring(document: YamlDocument, plan: MeasurementPlan) -> None:
    """A few steps with the same data and seed; nothing is loaded, saved or evaluated.

    The profile of the plan is collected by our hook, not by the trainer.
    """
    for key in _LEFT_OUT:
        document.remove(key_path(key))
    settings: dict[str, Any] = {
        "training.train_iters": plan.total_steps,
        "training.val_interval": 0,
        "training.log_interval": 1,
        "training.load_rank0_and_broadcast": False,  # needs `load`
        "tools.memory_profile.enable": False,
        "tools.profile.enable": False,
    }
    before = document.data
    for key, value in settings.items():
        if value_at(before, key) != value:
            document.put(key_path(key), value)
