"""A few proposals for nobody: whether an Optuna sampler of the user's own can search the space."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from optuna.exceptions import OptunaError

from autotune.errors import UserError
from autotune.search.point_sampler import PointSampler

# Samplers differ in when they begin to use what was measured: TPE after ten trials.
_RUNS = 12
# What foreign code raises where an argument does not suit it, or a library is not there.
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OptunaError,
    RuntimeError,
    TypeError,
    ValueError,
)


def rehearse(sampler: PointSampler, name: str) -> None:
    """Asks for the first proposal, and for one after some made-up runs.

    Raises UserError where there is none: later it would be in the middle of a night.
    """
    try:
        with _silence():
            for runs in (0, _RUNS):
                _ask(sampler, runs)
    except _FAULTS as error:
        text = str(error).strip().partition("\n")[0]
        said = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise UserError(
            f"search.sampler: {name} cannot propose a point of this space ({said}); correct its "
            "arguments, install what it needs, or take search.sampler=guided"
        ) from None


def _ask(sampler: PointSampler, runs: int) -> None:
    encoding = sampler.encoding
    study = optuna.create_study(sampler=sampler)
    for number, codes in enumerate(encoding.space.codes[:-1][:runs]):
        params = encoding.encode(encoding.space.decode(codes))
        distributions = {name: encoding.distributions[name] for name in params}
        trial = optuna.trial.create_trial(
            params=params,
            distributions=distributions,
            value=1.0 + number,
            constraints={"memory": -0.1},
        )
        study.add_trial(trial)
    _ = study.ask().relative_params


@contextmanager
def _silence() -> Iterator[None]:
    """Optuna says of every study that it was created."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
