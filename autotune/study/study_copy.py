"""A study's copy in a database, through all that may befall a database."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from optuna.trial import FrozenTrial

from autotune.errors import UserError
from autotune.study.database_error import TROUBLE, CopyLostError, is_busy, reason_of
from autotune.study.place import DatabaseFile, DatabaseServer, Place

log = logging.getLogger(__name__)
T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


class Session(Protocol):
    """A connection to the study in its database. Every method raises what `TROUBLE` lists."""

    @property
    def found(self) -> list[FrozenTrial]:
        """The trials that were there when it was made, by their numbers; none of a new study."""
        ...

    def bring_up_to_date(self, trials: Sequence[FrozenTrial]) -> int:
        """Makes the database agree; returns how many results it lacked. Before `keep`."""
        ...

    def keep(self, number: int, trials: Sequence[FrozenTrial]) -> None:
        """Writes a trial that has begun or ended."""
        ...

    def put_aside(self) -> str:
        """Keeps what is there under a name that it returns, and begins a new study."""
        ...

    def close(self) -> None:
        """Gives everything back. Raises nothing: what it belongs to may be gone."""
        ...


@dataclass
class StudyCopy:
    """Keeps the database as the study is in memory.

    connect: makes a session; told whether this sweep had one before. Raises UserError, where
    waiting does not help, or what `TROUBLE` lists. In all methods `trials` are those of the whole
    study by their numbers. What goes wrong is told in the log.
    """

    place: Place
    connect: Callable[[bool], Session]
    _session: Session | None = field(default=None)
    _has_begun: bool = False
    _is_late: bool = False  # a locked file was not waited for any longer

    def open(self) -> list[FrozenTrial]:
        """The trials that are there. Raises UserError.

        Of all that can go wrong only another program's lock on a file is waited for: somebody
        sits there and looks. Side effect: a file that is no database is put aside.
        """
        place = self.place
        if isinstance(place, DatabaseFile):
            place.path.parent.mkdir(parents=True, exist_ok=True)
            if not place.is_sound:
                log.warning("%s is no sound database; it is kept as %s", place, place.put_aside())
        try:
            return self._patiently(self._begin)
        except TROUBLE as error:
            if is_busy(error):
                raise _unusable(self.place, error) from None
            return self._in_new_file(self._begin, error)

    def put_study_aside(self, results: int) -> None:
        """Keeps what is there under another name. results: how many. Raises UserError."""
        try:
            aside = self._connected.put_aside()
        except TROUBLE as error:
            raise _unusable(self.place, error) from None
        log.warning(
            "the study database %s holds %d results that trials.jsonl has not; they are kept there "
            "as the study %r",
            self.place,
            results,
            aside,
        )

    def bring_up_to_date(self, trials: Sequence[FrozenTrial], tells: bool = True) -> None:
        """Writes what is missing, and tells of results that should have been there.

        Raises UserError.
        """
        try:
            lacking = self._connected.bring_up_to_date(trials)
        except TROUBLE as error:
            self._mend(error, trials)
        else:
            if lacking and tells:
                log.warning(
                    "the study database %s lacked %d results of trials.jsonl; it has them now",
                    self.place,
                    lacking,
                )

    def keep(self, number: int, trials: Sequence[FrozenTrial]) -> None:
        """Writes a trial that has begun or ended.

        A file that stays locked is left alone until a later trial. Raises UserError where a
        server stays away.
        """
        try:
            self._connected.keep(number, trials)
        except TROUBLE as error:
            self._mend(error, trials)

    def try_to_keep(self, numbers: Sequence[int], trials: Sequence[FrozenTrial]) -> None:
        """Writes trials that have ended if that goes at once: the sweep ends, too."""
        try:
            for number in numbers:
                self._connected.keep(number, trials)
        except TROUBLE as error:
            self.close()
            log.warning(
                "the study database %s cannot be written: %s; the next start brings it up to date",
                self.place,
                reason_of(error),
            )

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def _connected(self) -> Session:
        if self._session is None:
            raise CopyLostError("it was left alone, as another program held it")
        return self._session

    def _begin(self) -> list[FrozenTrial]:
        self._session = self.connect(self._has_begun)
        self._has_begun = True
        return self._session.found

    def _mend(self, error: Exception, trials: Sequence[FrozenTrial]) -> None:
        """Connects again and writes what is missing, into a new file if need be."""
        reason = reason_of(error)
        self.close()

        def catch_up() -> None:
            self._begin()
            self._connected.bring_up_to_date(trials)

        try:
            self._patiently(catch_up)
        except TROUBLE as last:
            if isinstance(self.place, DatabaseFile) and is_busy(last):
                self._leave_locked()
                return
            self._in_new_file(catch_up, last)
        else:
            log.warning(
                "the study database %s: %s; it is up to date again and lacks no result",
                self.place,
                reason,
            )
        self._is_late = False

    def _leave_locked(self) -> None:
        # A sound file that is in use must not be renamed: the other program may be in the middle
        # of a write (https://www.sqlite.org/howtocorrupt.html).
        if not self._is_late:
            log.warning(
                "the study database %s stays locked; the sweep goes on and tries it at each trial",
                self.place,
            )
        self._is_late = True

    def _patiently(self, action: Callable[[], T]) -> T:
        """Does it until it is done; raises the last trouble when that takes too long."""
        patience_s = 0.0 if self._is_late else self.place.patience_s
        until, pause_s = time.monotonic() + patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return action()
            except TROUBLE as error:
                self.close()
                is_away = isinstance(self.place, DatabaseServer) and self._has_begun
                if not (is_away or is_busy(error)) or time.monotonic() > until:
                    raise
                if pause_s == _FIRST_PAUSE_S:
                    log.warning(
                        "the study database %s: %s; trying again for %.0f s",
                        self.place,
                        reason_of(error),
                        patience_s,
                    )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _in_new_file(self, action: Callable[[], T], error: Exception) -> T:
        """Puts the study's own file aside and does it. Raises UserError for any other place."""
        if isinstance(self.place, DatabaseServer):
            if self._has_begun:
                raise _gone(self.place, error) from None
            raise _unusable(self.place, error) from None
        aside = self.place.put_aside()
        try:
            done = action()
        except TROUBLE as again:
            raise _unusable(self.place, again) from None
        kept = "" if aside is None else f"it is kept as {aside.name} and "
        log.warning(
            "the study database %s: %s; %swritten again from the results",
            self.place,
            reason_of(error),
            kept,
        )
        return done


def _unusable(place: Place, error: Exception) -> UserError:
    what = f"cannot open the study database {place}: {reason_of(error)}"
    if is_busy(error):
        return UserError(f"{what}; end the program that holds it, or wait for it")
    if isinstance(place, DatabaseFile):
        return UserError(f"{what}; the folder needs room and the right to write in it")
    return UserError(
        f"{what}; check study.storage, such as postgresql://USER@HOST/DATABASE, or "
        "leave it out for a file in the study folder"
    )


def _gone(place: DatabaseServer, error: Exception) -> UserError:
    return UserError(
        f"the study database {place} could not be written for {place.patience_s:.0f} s: "
        f"{reason_of(error)}; all results are in trials.jsonl. When the database is back, the same "
        "command goes on with the study; with study.storage=null it goes on without that database"
    )
