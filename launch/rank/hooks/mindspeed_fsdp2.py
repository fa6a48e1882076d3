"""The hook for MindSpeed-MM's native FSDP2 trainer.

`TrainEngine.training_log` is called on every rank after each step, with the step's time between
two barriers (fsdp/train/train_engine.py at commit 57069cd5). Where it is told to end, the number
of iterations is set to those made, and the trainer's own loop comes to its end.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from launch.rank.hooks.importing import after_import
from launch.rank.hooks.steps import HookedSteps

_MODULE = "mindspeed_mm.fsdp.train.train_engine"


def lay(steps: HookedSteps) -> None:
    """Wraps the engine when the trainer imports it."""
    after_import(_MODULE, lambda module: _wrap(module.TrainEngine, steps))


def _wrap(engine: Any, steps: HookedSteps) -> None:
    train, log = engine.train, engine.training_log
    signature = inspect.signature(log)

    @functools.wraps(train)
    def hooked_train(self: Any, *words: Any, **named: Any) -> Any:
        steps.begin()
        return train(self, *words, **named)

    @functools.wraps(log)
    def hooked_log(self: Any, *words: Any, **named: Any) -> Any:
        answer = log(self, *words, **named)
        given = signature.bind(self, *words, **named).arguments
        training = self.args.training
        details = {}
        if given["loss_dict"].get("loss") is not None:
            details["loss"] = _number(given["loss_dict"]["loss"])
        if given.get("grad_norm") is not None and training.clip_grad > 0:
            details["grad_norm"] = _number(given["grad_norm"])
        samples = training.global_batch_size
        seconds = float(given["elapsed_time_per_iteration"])
        if steps.made(seconds, samples=samples, **details):
            training.train_iters = self.iteration
        return answer

    engine.train, engine.training_log = hooked_train, hooked_log


def _number(value: Any) -> Any:
    """A tensor of one element, or a number, as a number."""
    return float(value.item() if hasattr(value, "item") else value) if value is not None else None
