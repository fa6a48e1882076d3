"""What a measuring trial changes in a Megatron launch besides its point.

Source: mindspeed_mm/training.py, mindspeed_mm/tools, Megatron-LM's arguments.py and
optimizer_param_scheduler.py at the commits in docs/mindspeed_mm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune.ports import MeasurementPlan
from launch.trainers.mindspeed.megatron_files import OpenFiles

# Nothing is loaded: without these the program initialises its weights. Nothing is written, and
# nothing ends the run early, or profiles it: the plan's profile is our hook's.
_LEFT_OUT = (
    *("--load", "--pretrained-checkpoint", "--load-base-model", "--save"),
    *("--save-interval", "--non-persistent-save-interval", "--non-persistent-ckpt-type"),
    *("--async-save", "--exit-interval", "--exit-duration-in-mins", "--exit-signal-handler"),
    *("--tensorboard-dir", "--wandb-project", "--wandb-exp-name", "--wandb-save-dir"),
    *("--one-logger-project", "--log-progress", "--profile", "--use-pytorch-profiler"),
    *("--record-memory-history", "--train-samples", "--lr-decay-samples", "--lr-warmup-samples"),
    "--rampup-batch-size",
)
_NO_EVALUATION = 1_000_000
_TOOLS: Mapping[str, bool] = {
    "tool:profile.enable": False,
    "tool:memory_profile.enable": False,
    "tool:memory_profile.mem_info": False,
}


def measuring(files: OpenFiles, plan: MeasurementPlan) -> None:
    """A few steps with the same data and seed; nothing is loaded, saved or evaluated.

    The learning rate goes as in the whole run: a decay over the trial's few iterations would end
    before the warm-up, which the program refuses.
    """
    arguments = files.arguments
    settings: dict[str, Any] = {
        "--train-iters": plan.total_steps,
        "--log-interval": 1,
        "--eval-iters": 0,
        "--eval-interval": _NO_EVALUATION,
    }
    if not arguments.has("--lr-decay-iters"):
        settings["--lr-decay-iters"] = _iterations(files)
    for option in _LEFT_OUT:
        if arguments.has(option):
            arguments.put(option, None)
    for key, value in settings.items():
        files.put(key, value)
    for key, value in _TOOLS.items():
        if files.get(key, value) is not value:
            files.put(key, value)


def _iterations(files: OpenFiles) -> int | None:
    """Of the whole run, however it is given."""
    arguments = files.arguments
    samples, batch = arguments.number("--train-samples"), arguments.number("--global-batch-size")
    if samples is not None and batch:
        return max(1, samples // batch)
    return arguments.number("--train-iters")
