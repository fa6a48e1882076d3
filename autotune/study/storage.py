"""The study as Optuna has it: trials in memory for samplers, and a copy of them in a database.

This is the one module that knows Optuna's storage. The copy serves Optuna's own tools, and tells
the next start which points were running when a sweep was killed. It is written after the journal
and not read while a sweep runs: whatever becomes of it, it can be written again.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import optuna
from optuna.exceptions import StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import ArgumentError

from autotune.errors import UserError
from autotune.search.encoding import Encoding
from autotune.space.point import Point
from autotune.study import told
from autotune.study.agreement import Lack, lack_of, strangers, trials_of
from autotune.study.claim import StudyClaim, Writer
from autotune.study.database_error import TROUBLE, CopyLostError, is_being_made
from autotune.study.place import DatabaseFile, DatabaseServer, Place, shown_url
from autotune.study.study_copy import StudyCopy
from autotune.study.told import slowest
from autotune.study.trial_record import TrialRecord

__all__ = ["OptunaStore", "slowest", "without_password"]

# Optuna makes its tables without a lock: of several that begin at once all but one fail.
_WHILE_BEING_MADE_S = (0.2, 0.4, 0.8, 1.6, 1.6, 1.6)
_WRITER = "sweep"  # the study's attribute that says who writes it
# Without peaks a usable point is under any limit, and one that does not run is over it.
_ANY_LIMIT_BYTES = 1


@dataclass
class OptunaStore:
    """One Optuna study, asked and told by a single process. copy: None for none."""

    study: optuna.Study
    encoding: Encoding
    memory_limit_bytes: int
    copy: StudyCopy | None = None
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

        url: None for SQLite in `database`. Raises UserError where the database cannot be opened,
        or another sweep writes the study. Side effects: trials that a killed sweep left running
        are closed with a reason; a file that is no database is moved aside; results that the
        journal does not know are kept in the database under another name.
        """
        _quieten_optuna()
        place = DatabaseFile(database) if url is None else DatabaseServer(url)
        writer = Writer.here(database.parent)
        copy = StudyCopy(place, partial(DatabaseSession.connect, name, place, writer))
        found = copy.open()
        if others := strangers(records, found, encoding):
            copy.put_study_aside(len(others))
            found = []
        store = cls(_study_in_memory(name), encoding, memory_limit_bytes, copy)
        store._begin_with(trials_of(records, found, encoding, memory_limit_bytes))
        return store

    @classmethod
    def in_memory(cls, encoding: Encoding, memory_limit_bytes: int | None) -> OptunaStore:
        """A new, empty study that is kept nowhere; without a limit no peaks must be told.

        Side effect: Optuna's own messages are silenced.
        """
        _quieten_optuna()
        limit = _ANY_LIMIT_BYTES if memory_limit_bytes is None else memory_limit_bytes
        return cls(_study_in_memory(None), encoding, limit)

    def ask(self, sampler: BaseSampler) -> tuple[int, Point]:
        """A new trial's number and point. Raises UserError when the database is gone for long."""
        self.study.sampler = sampler
        trial = self.study.ask()
        for name, distribution in self.encoding.distributions.items():
            if name in trial.relative_params:
                trial._suggest(name, distribution)
        self._open[trial.number] = trial
        self._keep(trial.number)
        return trial.number, self.encoding.decode(trial.params)

    def tell(self, record: TrialRecord, worst_s: float) -> None:
        """Closes a trial with its result. Raises UserError when the database is gone for long.

        worst_s: the slowest batch time so far in seconds, which stands in for a time that
        could not be measured.
        """
        trial = self._open.pop(record.trial)
        for key, value in told.attributes_of(record).items():
            trial.set_user_attr(key, value)
        violation = told.violation_of(record, self.memory_limit_bytes)
        if violation is not None:
            trial.set_constraint(told.CONSTRAINT, violation)
        state = told.state_of(record, violation)
        if state is TrialState.COMPLETE:
            self.study.tell(trial, told.value_of(record, worst_s))
        else:
            self.study.tell(trial, state=state)
        self._keep(record.trial)

    def close_open(self, reason: str) -> list[int]:
        """Closes the trials that are still running; their points may be tried again.

        A database that cannot be written now is brought up to date by the next start.
        """
        self._open.clear()
        storage, closed = self.study._storage, []
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            for key, value in told.interruption(reason).items():
                storage.set_trial_user_attr(trial._trial_id, key, value)
            storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
            closed.append(trial.number)
        if self.copy is not None:
            self.copy.try_to_keep(closed, self._trials)
        return closed

    def interrupted(self) -> list[tuple[int, Point]]:
        """Number and point of the trials that were closed without a result, oldest first."""
        return [
            (trial.number, self.encoding.decode(trial.params))
            for trial in self._trials
            if told.is_interrupted(trial) and trial.params
        ]

    def write_again(self, records: Sequence[TrialRecord]) -> None:
        """Fills the study with results, each under its own number, instead of what it held."""
        self.study = _study_in_memory(self.study.study_name)
        trials = trials_of(records, [], self.encoding, self.memory_limit_bytes)
        self._begin_with(trials, tells=False)

    def _begin_with(self, trials: Sequence[FrozenTrial], tells: bool = True) -> None:
        for trial in trials:
            self.study.add_trial(trial)
        if self.copy is not None:
            self.copy.bring_up_to_date(self._trials, tells)

    @property
    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _keep(self, number: int) -> None:
        if self.copy is not None:
            self.copy.keep(number, self._trials)


@dataclass
class DatabaseSession:
    """A connection to a study in Optuna's database: a `study_copy.Session`."""

    name: str
    place: Place
    writer: Writer
    storage: RDBStorage
    study_id: int
    claim: StudyClaim | None
    file: tuple[int, int] | None
    found: list[FrozenTrial]
    _is_fresh: bool = True  # nothing was written since `found` was
    # Optuna's id of every trial there, by the trial's number.
    _ids: list[int] = field(default_factory=list)

    @classmethod
    def connect(cls, name: str, place: Place, writer: Writer, is_again: bool) -> DatabaseSession:
        """Finds or creates the study and, on PostgreSQL, claims it.

        is_again: this process had the study before. Raises UserError, or what `TROUBLE` lists.
        """
        with contextlib.ExitStack() as undo:
            storage = _open_storage(place)
            undo.callback(storage.engine.dispose)
            claim = None
            if storage.engine.dialect.name == "postgresql":
                last = partial(_last_writer, storage, name)
                claim = StudyClaim.take(storage.engine, name, last, writer, str(place))
                undo.callback(claim.release)
                writer = replace(writer, session=claim.session)
            if is_again and isinstance(place, DatabaseServer):
                _refuse_if_lost(_last_writer(storage, name), writer, place)
            study_id = _find_or_create(storage, name)
            storage.set_study_user_attr(study_id, _WRITER, asdict(writer))
            found = _read(storage, study_id)
            undo.pop_all()
        file = place.identity if isinstance(place, DatabaseFile) else None
        return cls(name, place, writer, storage, study_id, claim, file, found)

    def bring_up_to_date(self, trials: Sequence[FrozenTrial]) -> int:
        """See `Session`."""
        found = self.found if self._is_fresh else _read(self.storage, self.study_id)
        self.found, self._is_fresh = [], False
        lack = lack_of(found, trials)
        if lack is None:
            self._begin_anew()
            found, lack = [], Lack((), tuple(trials))
        self._ids = [trial._trial_id for trial in found]
        for trial_id, trial in lack.finish:
            self._finish(trial_id, trial)
        for trial in lack.add:
            self._add(trial)
        results = [trial for _, trial in lack.finish] + list(lack.add)
        return sum(
            trial.state.is_finished() and not told.is_interrupted(trial) for trial in results
        )

    def keep(self, number: int, trials: Sequence[FrozenTrial]) -> None:
        """See `Session`."""
        self._check()
        is_there = number < len(self._ids)
        for trial in trials[len(self._ids) : number + 1]:
            self._add(trial)
        if is_there and trials[number].state.is_finished():
            self._finish(self._ids[number], trials[number])

    def put_aside(self) -> str:
        """See `Session`."""
        until = f"{self.name} (until {datetime.now():%Y-%m-%d %H:%M:%S}"
        taken = {study.study_name for study in self.storage.get_all_studies()}
        aside = next(name for n in itertools.count(1) if (name := _numbered(until, n)) not in taken)
        optuna.copy_study(
            from_study_name=self.name,
            from_storage=self.storage,
            to_storage=self.storage,
            to_study_name=aside,
        )
        self._begin_anew()
        self.found = []
        return aside

    def close(self) -> None:
        """See `Session`."""
        if self.claim is not None:
            self.claim.release()
        self.storage.engine.dispose()

    def _check(self) -> None:
        """Raises where what is written now would be lost, or written over another's."""
        if self.claim is not None:
            self.claim.check()
        if isinstance(self.place, DatabaseFile) and self.place.identity != self.file:
            raise CopyLostError("it was deleted or another file took its place")

    def _begin_anew(self) -> None:
        self.storage.delete_study(self.study_id)
        self.study_id = _find_or_create(self.storage, self.name)
        self.storage.set_study_user_attr(self.study_id, _WRITER, asdict(self.writer))

    def _add(self, trial: FrozenTrial) -> None:
        trial_id = self.storage.create_new_trial(self.study_id, template_trial=trial)
        if self.storage.get_trial_number_from_id(trial_id) != trial.number:
            raise CopyLostError("somebody else has added trials to it")
        self._ids.append(trial_id)

    def _finish(self, trial_id: int, trial: FrozenTrial) -> None:
        for key, value in trial.user_attrs.items():
            self.storage.set_trial_user_attr(trial_id, key, value)
        for key, value in trial.system_attrs.items():
            self.storage.set_trial_system_attr(trial_id, key, value)
        # Last: what is finished cannot be changed any more.
        self.storage.set_trial_state_values(trial_id, trial.state, trial.values)


def without_password(url: str | None) -> str | None:
    """A database URL as it may be shown and kept."""
    return None if url is None else shown_url(url)


def _quieten_optuna() -> None:
    optuna.logging.disable_default_handler()
    optuna.logging.enable_propagation()
    # Its warnings are about single draws of an inner sampler, many a trial.
    logging.getLogger("optuna").setLevel(logging.ERROR)


def _study_in_memory(name: str | None) -> optuna.Study:
    return optuna.create_study(study_name=name, direction="minimize")


def _open_storage(place: Place) -> RDBStorage:
    """Raises UserError where the URL or the driver is at fault, or what `TROUBLE` lists."""
    for pause_s in (*_WHILE_BEING_MADE_S, None):
        try:
            return _connect(place)
        except TROUBLE as error:
            if pause_s is None or not is_being_made(error):
                raise
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
    raise AssertionError("the last attempt returns or raises")


def _connect(place: Place) -> RDBStorage:
    try:
        return RDBStorage(place.address, engine_kwargs=place.options)
    except ArgumentError as error:  # no URL, or no such kind of database
        first = str(error).splitlines()[0]
        raise UserError(
            f"cannot open the study database {place}: {first}; give study.storage as an Optuna "
            "RDB URL, such as postgresql://USER@HOST/DATABASE or sqlite:///study.db"
        ) from None
    except ImportError:
        raise UserError(
            f"cannot open the study database {place}: its driver is not installed; for PostgreSQL "
            "type: pip install 'psycopg[binary]' 'sqlalchemy>=2.1'"
        ) from None
    except RuntimeError as error:  # tables of another version of Optuna, or none of its own
        raise StorageInternalError(str(error)) from error


def _numbered(name: str, number: int) -> str:
    return f"{name})" if number == 1 else f"{name}, {number})"


def _find_or_create(storage: RDBStorage, name: str) -> int:
    try:
        return storage.get_study_id_from_name(name)
    except KeyError:
        return storage.create_new_study([StudyDirection.MINIMIZE], name)


def _read(storage: RDBStorage, study_id: int) -> list[FrozenTrial]:
    try:
        trials = storage.get_all_trials(study_id, deepcopy=False)
    except ValueError as error:  # a text that should be JSON, in a file that was overwritten
        raise StorageInternalError(f"it does not read: {error}") from error
    return sorted(trials, key=lambda trial: trial.number)


def _last_writer(storage: RDBStorage, name: str) -> Writer | None:
    """Who has written the study last, as far as it says so."""
    try:
        study_id = storage.get_study_id_from_name(name)
        return Writer.from_data(storage.get_study_user_attrs(study_id).get(_WRITER))
    except KeyError:
        return None


def _refuse_if_lost(last: Writer | None, me: Writer, place: DatabaseServer) -> None:
    """Raises UserError where another sweep took the study while this one had no connection."""
    if last is None or last.is_process_of(me):
        return
    raise UserError(
        f"another sweep has taken over this study in {place}, while this one could not reach it: "
        f"{last}; all results are in trials.jsonl. Give one of them a study of its own with "
        "study.name=NAME"
    )
