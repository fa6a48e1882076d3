"""`search.sampler` -> an Optuna sampler over the legal points."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from optuna.samplers import BaseSampler, GPSampler, TPESampler

from autotune.errors import UserError
from autotune.search.encoding import Encoding
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.sampler import GuidedSampler
from autotune.search.point_sampler import (
    ExhaustiveSampler,
    PointSampler,
    RandomPointSampler,
    WrappedSampler,
)
from autotune.search.rehearsal import rehearse
from autotune.search.setting import check_setting

# With budgets of some dozen trials, Optuna's default of ten random ones first is too many.
_STARTUP_TRIALS = 8


def make_sampler(
    setting: Any,
    encoding: Encoding,
    seed: int,
    knowledge: Knowledge | None = None,
    *,
    rehearsed: bool = True,
) -> PointSampler:
    """The sampler that `search.sampler` names. Raises UserError.

    knowledge: what is known of the space beforehand, for the samplers that use it.

    A mapping with `_target_` makes an Optuna sampler of the user's own, with the other keys
    as its arguments; it is held to legal points like Optuna's. rehearsed: whether such a one is
    asked for a proposal at once, to see that it works; False where that is known.
    """
    check_setting(setting, seed)
    if isinstance(setting, Mapping):
        own = WrappedSampler(encoding, seed, _own(setting))
        if rehearsed:
            rehearse(own, str(setting["_target_"]))
        return own
    makers: dict[str, Callable[[], PointSampler]] = {
        "guided": lambda: GuidedSampler(encoding, seed, knowledge),
        "tpe": lambda: WrappedSampler(encoding, seed, _tpe),
        "gp": lambda: WrappedSampler(encoding, seed, _gp),
        "random": lambda: RandomPointSampler(encoding, seed),
        "exhaustive": lambda: ExhaustiveSampler(encoding, seed),
    }
    return makers[str(setting)]()


def _tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed, n_startup_trials=_STARTUP_TRIALS)


def _gp(seed: int) -> BaseSampler:
    return GPSampler(seed=seed, n_startup_trials=_STARTUP_TRIALS)


def _own(setting: Mapping[str, Any]) -> Callable[[int], BaseSampler]:
    target = str(setting.get("_target_", ""))
    module_name, _, name = target.rpartition(".")
    try:
        made = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UserError(
            f"search.sampler._target_={target!r} cannot be imported ({error}); "
            "give the dotted name of a class, such as optuna.samplers.QMCSampler"
        ) from None
    if not (isinstance(made, type) and issubclass(made, BaseSampler)):
        raise UserError(f"search.sampler._target_={target!r} is no class of Optuna samplers")
    arguments = {str(key): value for key, value in setting.items() if key != "_target_"}

    def make(seed: int) -> BaseSampler:
        try:
            return made(**arguments, **_seed_argument(made, arguments, seed))
        except (TypeError, ValueError, ImportError) as error:
            raise UserError(
                f"search.sampler: {target} does not take these arguments: {error}"
            ) from None

    make(0)  # wrong arguments are told now, not after the baseline
    return make


def _seed_argument(made: Any, arguments: Mapping[str, Any], seed: int) -> dict[str, int]:
    """Our seed, for a sampler that takes one and was given none."""
    takes = "seed" in inspect.signature(made).parameters
    return {"seed": seed} if takes and "seed" not in arguments else {}
