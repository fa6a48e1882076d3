"""What is worked out of a trial, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from optuna.trial import FrozenTrial

Made = TypeVar("Made")


@dataclass(frozen=True)
class PerTrial(Generic[Made]):
    """Remembers what was made of each trial of the study that was read last.

    By the trial itself and not by its number alone: another study counts from 0 too, and Optuna
    puts another object in the place of a trial that has changed.
    """

    make: Callable[[FrozenTrial], Made]
    _kept: dict[int, tuple[FrozenTrial, Made]] = field(default_factory=dict)

    def of(self, trial: FrozenTrial) -> Made:
        """What `make` gives for the trial."""
        kept = self._kept.get(trial.number)
        if kept is None or kept[0] is not trial:
            kept = self._kept[trial.number] = (trial, self.make(trial))
        return kept[1]
