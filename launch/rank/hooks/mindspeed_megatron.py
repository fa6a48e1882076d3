"""The hook for MindSpeed-MM's Megatron backends.

`mindspeed_mm.training` makes the steps for all of their programs, which import its `pretrain`;
`train`, `train_step` and `training_log` are looked up in the module when they are called, so they
are wrapped there (mindspeed_mm/training.py at commit 57069cd5).

The time of a step goes from the end of the step before, the first from the begin of `train`, to
the end of its own `training_log`, with the device synchronised: loading of data, forward,
backward, optimizer and the program's own log count. All ranks wait for each other in that log
when it is printed, as in trials it is after each step. Where the program is told to end, the
number of iterations is set to those made, and its own loop comes to its end.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from typing import Any, Dict  # noqa: UP035 (Python 3.8 subscripts no other)

from launch.rank.hooks.importing import after_import
from launch.rank.hooks.memory import device_of
from launch.rank.hooks.steps import HookedSteps

_MODULE = "mindspeed_mm.training"


def lay(steps: HookedSteps) -> None:
    """Wraps the functions when the program imports the module."""
    after_import(_MODULE, lambda module: _wrap(module, steps))


def _wrap(module: Any, steps: HookedSteps) -> None:
    train, log = module.train, module.training_log
    signature = inspect.signature(log)
    clock = _Clock()

    @functools.wraps(train)
    def hooked_train(*words: Any, **named: Any) -> Any:
        steps.begin()
        clock.start()
        return train(*words, **named)

    @functools.wraps(log)
    def hooked_log(*words: Any, **named: Any) -> Any:
        given = signature.bind(*words, **named).arguments
        details = _details(given)
        answer = log(*words, **named)
        seconds = clock.lap()
        args = module.get_args()
        samples = module.get_current_global_batch_size()
        if steps.made(seconds, samples=samples, **details):
            args.train_iters = given["iteration"]
        clock.start()
        return answer

    module.train, module.training_log = hooked_train, hooked_log


class _Clock:
    """Seconds between moments at which the device had nothing left to do."""

    def __init__(self) -> None:
        self._begin = 0.0

    def start(self) -> None:
        """Time counts from here on; what was done before is done."""
        _synchronise()
        self._begin = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the start."""
        _synchronise()
        return time.perf_counter() - self._begin


def _synchronise() -> None:
    device = device_of()
    if device != "cpu":
        getattr(sys.modules["torch"], device).synchronize()


def _details(given: Dict[str, Any]) -> Dict[str, Any]:  # noqa: UP006
    """What the record of a step has besides: the loss is known in the last pipeline stage."""
    details: Dict[str, Any] = {"skipped": bool(given["skipped_iter"])}  # noqa: UP006
    loss = given["loss_dict"].get("loss")
    if loss is not None:
        details["loss"] = _number(loss)
    if given.get("grad_norm") is not None:
        details["grad_norm"] = _number(given["grad_norm"])
    return details


def _number(value: Any) -> float:
    """A tensor of one element, or a number, as a number."""
    return float(value.item() if hasattr(value, "item") else value)
