"""The study in Optuna's database: the one module that knows Optuna's storage.

The database serves samplers and Optuna's own tools. Results are written to the journal
first, so the database may lag behind it but never knows more; where the two do not agree
when a sweep starts, the database is written again from the journal.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import optuna
from optuna.exceptions import StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from autotune.errors import UserError
from autotune.measure.outcome import Status
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import CHECKED_ATTRIBUTE, INTERRUPTED_ATTRIBUTE
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord

log = logging.getLogger(__name__)

_CONSTRAINT = "memory"
_LOCK_WAIT_S = 150  # another program may hold a lock on the file for that long
# A violated constraint needs a size; a point that was refused or died before it reported a
# peak is told to be over by this share of the limit.
_LEAST_OVERSHOOT = 1e-3
# Without peaks a usable point is under any limit, and one that does not run is over it.
_ANY_LIMIT_BYTES = 1


@dataclass
class OptunaStore:
    """One Optuna study, asked and told by a single process."""

    study: optuna.Study
    encoding: Encoding
    memory_limit_bytes: int
    _open: dict[int, Trial] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        name: str,
        url: str | None,
        database: Path,
        encoding: Encoding,
        memory_limit_bytes: int,
        records: Sequence[TrialRecord],
    ) -> OptunaStore:
        """Opens or creates the study, and makes it agree with the journal's `records`.

        url: None for SQLite in `database`. Side effects: trials that a killed sweep left
        running are closed with a reason; a file that is no database is moved aside.
        """
        _quieten_optuna()
        storage = _open_storage(url, database)
        study = _load(name, storage)
        store = cls(study, encoding, memory_limit_bytes)
        store._close_left_open()
        if not store._agrees_with(records):
            log.warning("the database does not agree with trials.jsonl; writing it again")
            optuna.delete_study(study_name=name, storage=storage)
            store.study = _load(name, storage)
            store.write_again(records)
        return store

    @classmethod
    def in_memory(cls, encoding: Encoding, memory_limit_bytes: int | None) -> OptunaStore:
        """A new, empty study that is kept nowhere; without a limit no peaks must be told.

        Side effect: Optuna's own messages are silenced.
        """
        _quieten_optuna()
        limit = _ANY_LIMIT_BYTES if memory_limit_bytes is None else memory_limit_bytes
        return cls(optuna.create_study(direction="minimize"), encoding, limit)

    def ask(self, sampler: BaseSampler) -> tuple[int, Point]:
        """A new trial's number and point."""
        self.study.sampler = sampler
        trial = self.study.ask()
        for name, distribution in self.encoding.distributions.items():
            if name in trial.relative_params:
                trial._suggest(name, distribution)
        self._open[trial.number] = trial
        return trial.number, self.encoding.decode(trial.params)

    def tell(self, record: TrialRecord, worst_s: float) -> None:
        """Closes a trial with its result.

        worst_s: the slowest batch time so far in seconds, which stands in for a time that
        could not be measured.
        """
        trial = self._open.pop(record.trial)
        for key, value in _attributes(record).items():
            trial.set_user_attr(key, value)
        violation = _violation(record, self.memory_limit_bytes)
        if violation is not None:
            trial.set_constraint(_CONSTRAINT, violation)
        state = _state(record, violation)
        if state is TrialState.COMPLETE:
            self.study.tell(trial, _value(record, worst_s))
        else:
            self.study.tell(trial, state=state)

    def close_open(self, reason: str) -> list[int]:
        """Closes the trials that are still running; their points may be tried again."""
        self._open.clear()
        return self._close_left_open(reason)

    def interrupted(self) -> list[tuple[int, Point]]:
        """Number and point of the trials that were closed without a result, oldest first."""
        return [
            (trial.number, self.encoding.decode(trial.params))
            for trial in self.study.get_trials(deepcopy=False)
            if trial.user_attrs.get(INTERRUPTED_ATTRIBUTE) and trial.params
        ]

    def _close_left_open(self, reason: str = "interrupted: the sweep was killed") -> list[int]:
        storage, closed = self.study._storage, []
        for trial in self.study.get_trials(
            deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)
        ):
            for key, value in _interrupted(reason).items():
                storage.set_trial_user_attr(trial._trial_id, key, value)
            storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
            closed.append(trial.number)
        return closed

    def _agrees_with(self, records: Sequence[TrialRecord]) -> bool:
        trials = self.study.get_trials(deepcopy=False)
        told = {t.number: t for t in trials if not t.user_attrs.get(INTERRUPTED_ATTRIBUTE)}
        if len(told) != len(records):
            return False
        return all(
            record.trial in told
            and told[record.trial].user_attrs.get("status") == record.status.value
            and told[record.trial].params == self.encoding.encode(record.parameters)
            for record in records
        )

    def write_again(self, records: Sequence[TrialRecord]) -> None:
        """Fills an empty study with results, each under its own number."""
        by_number = {record.trial: record for record in records}
        worst_s = slowest(records)
        for number in range(max(by_number, default=-1) + 1):
            record = by_number.get(number)
            if record is not None:
                self.study.add_trial(self._frozen(record, worst_s))
                continue
            attributes = _interrupted("interrupted, as trials.jsonl has no result of it")
            self.study.add_trial(create_trial(state=TrialState.FAIL, user_attrs=attributes))

    def _frozen(self, record: TrialRecord, worst_s: float) -> FrozenTrial:
        params = self.encoding.encode(record.parameters)
        violation = _violation(record, self.memory_limit_bytes)
        state = _state(record, violation)
        return create_trial(
            state=state,
            value=_value(record, worst_s) if state is TrialState.COMPLETE else None,
            params=params,
            distributions={name: self.encoding.distributions[name] for name in params},
            user_attrs=_attributes(record),
            constraints=None if violation is None else {_CONSTRAINT: violation},
        )


def _quieten_optuna() -> None:
    optuna.logging.disable_default_handler()
    optuna.logging.enable_propagation()
    # Its warnings are about single draws of an inner sampler, many a trial.
    logging.getLogger("optuna").setLevel(logging.ERROR)


def _interrupted(reason: str) -> dict[str, object]:
    return {"status": "interrupted", "reason": reason, INTERRUPTED_ATTRIBUTE: True}


def slowest(records: Sequence[TrialRecord]) -> float:
    """The slowest batch time of the records in seconds, 1.0 where none was measured."""
    return max((t.mean_s for r in records if (t := r.batch_time) is not None), default=1.0)


def _violation(record: TrialRecord, limit: int) -> float | None:
    """How far the peak is over the limit, as a share of it; at most 0 is feasible.

    None for a trial that tells nothing about its point. An out-of-memory error is told as a
    violation: samplers do not see failed trials and would propose the like again.
    """
    peak = record.outcome.peak_memory_bytes
    if not record.was_launched and record.gate is not None:
        peak = record.gate.predicted_peak_bytes
    if record.status.violates_memory:
        return max(((peak or 0) - limit) / limit, _LEAST_OVERSHOOT)
    if record.status in (Status.OK, Status.STOPPED):
        return ((peak or 0) - limit) / limit
    return None


def _state(record: TrialRecord, violation: float | None) -> TrialState:
    """How Optuna sees the trial: pruned where it was not launched, failed where it tells nothing.

    Told as failed, a point that does not fit would teach samplers nothing.
    """
    if not record.was_launched:
        return TrialState.PRUNED
    return TrialState.FAIL if violation is None else TrialState.COMPLETE


def _value(record: TrialRecord, worst_s: float) -> float:
    measured = record.outcome.batch_time_s
    return worst_s if measured is None else measured


def _attributes(record: TrialRecord) -> dict[str, object]:
    return {
        "status": record.status.value,
        "reason": record.outcome.reason,
        "attempt": record.attempt,
        "peak_memory_bytes": record.outcome.peak_memory_bytes,
        # As people write them: Optuna has the index of an ordered choice.
        "parameters": dict(record.parameters),
        CHECKED_ATTRIBUTE: record.was_checked,
        # False where the value is a stand-in for a time that could not be measured.
        "measured": record.outcome.batch_time_s is not None,
    }


def _open_storage(url: str | None, database: Path) -> RDBStorage:
    if url is not None:
        return _connect(url, {}, str(without_password(url)))
    database.parent.mkdir(parents=True, exist_ok=True)
    address = URL.create("sqlite", database=str(database)).render_as_string(hide_password=False)
    options = {"connect_args": {"timeout": _LOCK_WAIT_S}}
    if database.exists() and not _is_sound(database):
        aside = database.with_name(f"{database.name}.broken-{int(time.time())}")
        database.replace(aside)
        log.warning("%s is no sound database; it is kept as %s", database, aside.name)
    return _connect(address, options, str(database))


def without_password(url: str | None) -> str | None:
    """A database URL as it may be shown and kept."""
    if url is None:
        return None
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url


def _is_sound(database: Path) -> bool:
    """Whether SQLite can read the file. One that is locked by others is sound."""
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=_LOCK_WAIT_S)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.OperationalError:
        return True
    except sqlite3.DatabaseError:
        return False


def _connect(address: str, options: Mapping[str, object], shown: str) -> RDBStorage:
    try:
        return RDBStorage(address, engine_kwargs=dict(options))
    except (SQLAlchemyError, StorageInternalError, ImportError) as error:
        first = str(error).splitlines()[0]
        raise UserError(
            f"cannot open the study database {shown}: {first}; "
            "give study.storage as an Optuna RDB URL, such as sqlite:///study.db"
        ) from None


def _load(name: str, storage: RDBStorage) -> optuna.Study:
    return optuna.create_study(
        study_name=name, storage=storage, direction="minimize", load_if_exists=True
    )
