"""The PostgreSQL server that `.ci/run` starts for the tests, and a sweep of another process."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "AUTOTUNE_TEST_POSTGRES"
WHY_SKIPPED = (
    f"{VARIABLE} names no server: run .ci/run, or "
    f'export {VARIABLE}="$(.ci/postgres start "$(mktemp -d)")"'
)


@dataclass(frozen=True)
class Database:
    """A database of its own on the server."""

    server: Server
    name: str

    def url(self, user: str | None = None, password: str | None = None) -> str:
        """For `study.storage`; of the server's own user unless one is given."""
        url = self.server.url.set(database=self.name)
        if user is not None:
            url = url.set(username=user, password=password)
        return url.render_as_string(hide_password=False)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of another program; what it begins is rolled back in the end."""
        with self.server.connection(self.name) as connection:
            yield connection


@dataclass(frozen=True)
class Server:
    """url: of its database `postgres`."""

    url: URL

    @classmethod
    def given(cls) -> Server:
        """The one that the environment names."""
        return cls(make_url(os.environ[VARIABLE]))

    @contextmanager
    def connection(self, database: str = "postgres") -> Iterator[psycopg.Connection[Any]]:
        """A connection without a transaction around."""
        with psycopg.connect(
            host=str(self.url.query["host"]),
            user=self.url.username,
            password=self.url.password,
            dbname=database,
            autocommit=True,
        ) as connection:
            yield connection

    @contextmanager
    def new_database(self) -> Iterator[Database]:
        """A database for one test, dropped in the end."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with self.connection() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield Database(self, name)
        with self.connection() as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def control(self, command: str) -> None:
        """start, restart or stop."""
        folder = str(self.url.query["host"])
        script = ROOT / ".ci" / "postgres"
        subprocess.run([script, command, folder], check=True, timeout=60, capture_output=True)


@contextmanager
def other_sweep(database: Database, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the study `bench`, with two results in its own folder."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.study.postgres_holder", database.url(), str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds it\n"
        yield process
    finally:
        process.kill()
        process.communicate()
