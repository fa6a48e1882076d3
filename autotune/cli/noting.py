"""Warnings of a running sweep, kept in the study beside what its listener is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _NotingHandler(logging.Handler):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one warning; where that cannot be written, logging itself says so."""
        try:
            self._note(record.getMessage())
        except OSError:
            self.handleError(record)


@contextmanager
def warnings_noted(note: Callable[[str], None]) -> Iterator[None]:
    """Passes warnings of this program on to `note` as well."""
    handler = _NotingHandler(note)
    loggers = [logging.getLogger("autotune"), logging.getLogger("launch")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
