"""One sweep at a time on a study in a PostgreSQL database.

The lock file keeps a second sweep out of a study's folder. But two folders may name one study in
one database, from two machines that share no disk; each would write over the other's results.

The claim is an advisory lock of a session of its own
(https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS). A heartbeat in the
study's attributes would do too, but not as well: of two sweeps that start at once only one can
have a lock, the server drops it with the connection however the sweep dies, and no clocks of two
machines are compared. Who holds it is written down as an attribute of the study, for people.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import UserError

_ROOM = 1_635_087_471  # of our locks among those of other programs in the database: "auto"
_PATIENCE_S = 1.0  # the server may be about to notice that the last holder is gone
_HOLDER = text(
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2"
    " AND classid = CAST(:room AS oid) AND objid = CAST(:key AS oid)"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True)
class Writer:
    """The process that writes a study.

    started_at: of the process, seconds since the epoch, as its number comes again. session: the
    server's number of the session that holds the claim, None without one.
    """

    host: str
    pid: int
    started_at: float
    folder: str
    session: int | None = None

    @classmethod
    def here(cls, folder: Path) -> Self:
        """This process. folder: of the study."""
        started_at = psutil.Process().create_time()
        return cls(socket.gethostname(), os.getpid(), started_at, str(folder.absolute()))

    @classmethod
    def from_data(cls, data: Any) -> Self | None:
        """From plain values, None where they say nothing of the kind."""
        try:
            return cls(**data)
        except TypeError:
            return None

    def is_process_of(self, other: Writer) -> bool:
        """Whether both are the same process."""
        mine, others = (self.host, self.pid), (other.host, other.pid)
        return mine == others and self.started_at == other.started_at

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, with its results in {self.folder}"


@dataclass
class StudyClaim:
    """The right to write a study, held until `release` or the end of the process."""

    connection: Connection
    session: int

    @classmethod
    def take(
        cls, engine: Engine, study: str, last: Callable[[], Writer | None], me: Writer, place: str
    ) -> Self:
        """Takes the claim. last: asks the study who wrote down to hold it; place: for people.

        Raises UserError that names who holds it, SQLAlchemyError where the server does not
        answer. Side effect: a session that this very process has left behind is ended.
        """
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # the pool would lend it to others
        try:
            lock = _lock_of(connection, study)
            until = time.monotonic() + _PATIENCE_S
            while not _is_taken(connection, lock):
                holder = last()
                _end_own(connection, lock, holder, me)
                if time.monotonic() > until:
                    raise UserError(_refusal(study, holder, place))
                time.sleep(0.05)
            session = connection.scalar(text("SELECT pg_backend_pid()"))
        except (UserError, SQLAlchemyError):
            connection.close()
            raise
        assert isinstance(session, int)
        return cls(connection, session)

    def check(self) -> None:
        """Raises SQLAlchemyError when the session is gone, and the claim with it."""
        self.connection.execute(text("SELECT 1"))

    def release(self) -> None:
        """Gives the claim back."""
        self.connection.close()


def _lock_of(connection: Connection, study: str) -> Mapping[str, int]:
    """The two numbers of the lock. Each schema of a database may hold studies of its own."""
    schema = connection.scalar(text("SELECT current_schema()"))
    digest = hashlib.sha256(f"{schema}/{study}".encode()).digest()
    return {"room": _ROOM, "key": int.from_bytes(digest[:4], "big") >> 1}


def _is_taken(connection: Connection, lock: Mapping[str, int]) -> bool:
    return bool(connection.scalar(text("SELECT pg_try_advisory_lock(:room, :key)"), lock))


def _end_own(
    connection: Connection, lock: Mapping[str, int], last: Writer | None, me: Writer
) -> None:
    """Ends the session that holds the lock, if this process has left it behind."""
    if last is None or not last.is_process_of(me):
        return
    if connection.scalar(_HOLDER, lock) == last.session:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": last.session})


def _refusal(study: str, holder: Writer | None, place: str) -> str:
    who = "its process is not known" if holder is None else str(holder)
    return (
        f"another sweep writes the study {study!r} in {place}: {who}; wait for it, stop it, or "
        "start a study of its own with study.name=NAME (a machine that is gone is noticed in a "
        "minute)"
    )
