"""Where a study's database is: a file in the study folder, or what a URL names.

https://docs.sqlalchemy.org/en/21/core/engines.html#database-urls
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

# One attempt to write waits so long for another program's lock. Optuna makes five for a new trial.
_BUSY_S = 10
# What https://www.postgresql.org/docs/current/libpq-connect.html calls them: a machine or a way
# to it that is gone is noticed in a minute, by the server too, which then frees the claim.
_LIBPQ: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "options": "-c lock_timeout=60s -c tcp_keepalives_idle=30 "
    "-c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
}
_LIBPQ_DRIVERS = ("postgresql", "postgresql+psycopg", "postgresql+psycopg2")
# What SQLite keeps beside a file in the middle of a write. It must not meet another file of
# that name, which it would change (https://www.sqlite.org/howtocorrupt.html).
_COMPANIONS = ("-journal", "-wal", "-shm")


@dataclass(frozen=True)
class DatabaseFile:
    """SQLite in the study folder, this study's alone: it may be put aside and written again."""

    path: Path
    patience_s: ClassVar[float] = 150.0  # for a program that holds a lock on it

    @property
    def address(self) -> str:
        """As the URL that Optuna is given."""
        url = URL.create("sqlite", database=str(self.path))
        return _no_template(url.render_as_string(hide_password=False))

    @property
    def options(self) -> dict[str, Any]:
        """For SQLAlchemy's engine."""
        return {"connect_args": {"timeout": _BUSY_S}}

    @property
    def identity(self) -> tuple[int, int] | None:
        """Differs when another file has taken its place; None without one."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    @property
    def is_sound(self) -> bool:
        """Whether SQLite can read it all. One that is missing or locked by others is sound."""
        if not self.path.exists():
            return True
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_BUSY_S)) as connection:
                checked = connection.execute("PRAGMA quick_check(1)").fetchone()
                return bool(checked == ("ok",))
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:
            return False

    def put_aside(self) -> Path | None:
        """Renames the file; returns its new path, None where there is none."""
        second = int(time.time())
        while (aside := _beside(self.path, f".broken-{second}")).exists():
            second += 1
        for companion in _COMPANIONS:
            with contextlib.suppress(FileNotFoundError):
                _beside(self.path, companion).replace(_beside(aside, companion))
        try:
            self.path.replace(aside)
        except FileNotFoundError:
            return None
        return aside

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class DatabaseServer:
    """What `study.storage` names, mostly PostgreSQL; other studies may be there too."""

    url: str
    patience_s: ClassVar[float] = 300.0  # for a restart, or another server to take over

    @property
    def address(self) -> str:
        """As the URL that Optuna is given."""
        return _no_template(self.url)

    @property
    def options(self) -> dict[str, Any]:
        """For SQLAlchemy's engine; what the URL says itself is left to it. Raises ArgumentError."""
        url = _parsed(self.url)
        if url.get_backend_name() == "sqlite":
            return {"connect_args": {"timeout": _BUSY_S}}
        options: dict[str, Any] = {"pool_pre_ping": True}
        if url.drivername in _LIBPQ_DRIVERS:
            given = url.query.keys()
            options["connect_args"] = {k: v for k, v in _LIBPQ.items() if k not in given}
        return options

    def __str__(self) -> str:
        return shown_url(self.url)


Place = DatabaseFile | DatabaseServer


def shown_url(url: str) -> str:
    """A database URL as it may be shown and kept, also one that is not quite right.

    A password that holds an @ or a ? ends at the last @.
    """
    shown = re.sub(r"^([\w+]*:/*[^:/@]*):.*@", r"\1:***@", url)
    if "://" not in url:
        shown = re.sub(r":[^:/@]+@", ":***@", shown)
    return re.sub(r"(?i)([?&][^=&]*password=)[^&]*", r"\1***", shown)


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ValueError as error:  # a port that is no number
        raise ArgumentError(str(error)) from None


def _no_template(url: str) -> str:
    # Optuna formats the URL it is given, to put a version of its own where one asks for it.
    return url.replace("{", "{{").replace("}", "}}")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
