"""The trials of an Optuna study as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from autotune.measure.outcome import Status
from autotune.search.encoding import Encoding
from autotune.search.guided.geometry import Codes, Floats
from autotune.search.per_trial import PerTrial
from autotune.search.point_sampler import INTERRUPTED_ATTRIBUTE

_STATUSES = {status.value: status for status in Status}
_RAN = (Status.OK, Status.STOPPED, Status.OVER_LIMIT)


@dataclass(frozen=True)
class History:
    """Runs in the order of their trials, whatever the order in which they ended.

    rows: (runs, parameters), as `LegalSpace.codes`. seconds: (runs,), nan where there is no
    time. peaks: (runs,) bytes, nan where unknown. usable: (runs,) of bool, within the limit.
    out_of_memory: (runs,) of bool. rough: (runs,) of bool, timed by the first steps only.
    pending: (trials, parameters) of those that run now.
    """

    rows: Codes
    seconds: Floats
    peaks: Floats
    usable: np.ndarray
    out_of_memory: np.ndarray
    rough: np.ndarray
    pending: Codes

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> np.ndarray:
        """(runs,) of bool: came to nothing for another reason than memory."""
        return np.asarray(~self.usable & ~self.out_of_memory)

    def first(self, runs: int) -> History:
        """The history as it was after so many runs, nothing running."""
        return History(
            self.rows[:runs],
            self.seconds[:runs],
            self.peaks[:runs],
            self.usable[:runs],
            self.out_of_memory[:runs],
            self.rough[:runs],
            self.pending[:0],
        )


def of_times(rows: Codes, seconds: Floats) -> History:
    """A history of usable runs of which nothing but the seconds (runs,) is known."""
    yes, no = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    return History(rows, seconds, np.full(len(rows), np.nan), yes, no, no, rows[:0])


class _Run(NamedTuple):
    row: Codes
    seconds: float
    peak: float
    usable: bool
    out_of_memory: bool
    rough: bool


@dataclass
class HistoryReader:
    """Reads a study again and again, and each finished trial once."""

    encoding: Encoding

    def __post_init__(self) -> None:
        self._runs = PerTrial(self._run)

    def read(
        self,
        trials: Iterable[FrozenTrial],
        steady_s: Mapping[bytes, float] | None = None,
        reserved: Mapping[int, bytes] | None = None,
    ) -> History:
        """The history of these trials.

        steady_s: seconds of points, by the bytes of their codes, that are known better than by
        their first run. reserved: codes of points that trials of these numbers run, whether they
        show them or not.
        """
        known, proposed = steady_s or {}, reserved or {}
        runs, pending = [], []
        for trial in sorted(trials, key=lambda trial: trial.number):
            if trial.number in proposed:
                pending.append(np.frombuffer(proposed[trial.number], dtype=np.int16))
                continue
            if not trial.params or trial.user_attrs.get(INTERRUPTED_ATTRIBUTE):
                continue
            if not trial.state.is_finished():
                pending.append(self.encoding.row(trial.params))
                continue
            run = self._runs.of(trial)
            if run is not None:
                runs.append(run)
        width = len(self.encoding.space.parameters)
        return History(
            _stack([run.row for run in runs], width),
            np.array([known.get(run.row.tobytes(), run.seconds) for run in runs]),
            np.array([run.peak for run in runs]),
            np.array([run.usable for run in runs], dtype=bool),
            np.array([run.out_of_memory for run in runs], dtype=bool),
            np.array([run.rough for run in runs], dtype=bool),
            _stack(pending, width),
        )

    def _run(self, trial: FrozenTrial) -> _Run | None:
        """None for a trial that tells nothing about its point."""
        status = _status(trial)
        if status is None or status in (Status.SKIPPED, Status.INFRASTRUCTURE):
            return None
        has_time = status in _RAN and trial.user_attrs.get("measured", True)
        seconds = float(trial.value or 0.0) if has_time and trial.value is not None else 0.0
        peak = trial.user_attrs.get("peak_memory_bytes")
        return _Run(
            row=self.encoding.row(trial.params),
            seconds=seconds if 0 < seconds < np.inf else np.nan,
            peak=float(peak) if peak and 0 < peak < np.inf else np.nan,
            usable=status in (Status.OK, Status.STOPPED),
            out_of_memory=status.violates_memory,
            rough=status is Status.STOPPED,
        )


def _status(trial: FrozenTrial) -> Status | None:
    """The status of a trial of this program's, or what an Optuna study says instead."""
    given: Mapping[str, Any] = trial.user_attrs
    if "status" in given:
        return _STATUSES.get(given["status"])
    if trial.state is TrialState.COMPLETE:
        violated = any(value > 0 for value in (trial.constraints or {}).values())
        return Status.OVER_LIMIT if violated else Status.OK
    return Status.FAILED if trial.state is TrialState.FAIL else None


def _stack(rows: list[Codes], width: int) -> Codes:
    return np.array(rows, dtype=np.int16).reshape(len(rows), width)
