"""Points that were proposed and that the study does not show yet."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from optuna.study import Study
from optuna.trial import FrozenTrial


class Reservations:
    """The proposals of a sampler for trials that run, and the lock under which they are made.

    A trial shows its point only when the objective has asked for the last parameter. In
    `study.optimize(n_jobs=4)` other threads ask for proposals before that.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # Weakly: a sampler must not keep every study alive that it ever served.
        self._rows: WeakKeyDictionary[Study, dict[int, bytes]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[Reservations], tuple[()]]:
        """A copy in another process, as Optuna's own samplers allow, serves no trial yet."""
        return Reservations, ()

    def keep(self, study: Study, number: int, row: bytes) -> None:
        """The trial of this number has been given the point, as the bytes of its codes."""
        self._rows.setdefault(study, {})[number] = row

    def of(self, study: Study, trials: Iterable[FrozenTrial]) -> dict[int, bytes]:
        """By number, the points of those of the study's trials that run; the rest is forgotten."""
        kept = self._rows.get(study, {})
        running = {t.number: kept[t.number] for t in trials if _runs(t) and t.number in kept}
        if kept:
            self._rows[study] = running
        return running


def _runs(trial: FrozenTrial) -> bool:
    return not trial.state.is_finished()
