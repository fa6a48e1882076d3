"""What goes wrong with a database: its reason in a line, and whether waiting may help."""

from __future__ import annotations

import sqlite3

from optuna.exceptions import DuplicatedStudyError, StorageInternalError, UpdateFinishedTrialError
from sqlalchemy.exc import SQLAlchemyError


class CopyLostError(Exception):
    """The database is not the one that was written to before."""


# It does not answer, is broken, or says something else than what was written to it, as after a
# person has deleted the study in a dashboard: then Optuna raises the last three.
TROUBLE = (
    SQLAlchemyError,
    StorageInternalError,
    CopyLostError,
    KeyError,
    DuplicatedStudyError,
    UpdateFinishedTrialError,
)


def reason_of(error: BaseException) -> str:
    """The driver's own words in one line, without what Optuna and SQLAlchemy put around them."""
    lines = str(_innermost(error)).strip().strip("'").splitlines()
    return lines[0] if lines else type(error).__name__


def is_being_made(error: BaseException) -> bool:
    """Whether another program makes Optuna's tables in the database at this moment."""
    words = str(_innermost(error))
    return "alembic_version" in words or ("table" in words and "already exists" in words)


def is_busy(error: BaseException) -> bool:
    """Whether another program holds a lock on the SQLite file."""
    # None where it was not SQLite that failed. The upper bits tell kinds of busy apart.
    code = getattr(_innermost(error), "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _innermost(error: BaseException) -> BaseException:
    if isinstance(error, StorageInternalError) and error.__cause__ is not None:
        return _innermost(error.__cause__)
    driver = getattr(error, "orig", None)
    return driver if isinstance(driver, BaseException) else error
