"""A listener that also keeps what it is told, for who looks in the morning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autotune.study.repeat import Repeat
from autotune.study.trial_record import TrialRecord
from autotune.sweep.progress import Listener, Progress, RunningTrial


@dataclass(frozen=True)
class NotedListener:
    """Passes everything on to `listener`; what a person should know goes to `note` as well."""

    listener: Listener
    note: Callable[[str], None]

    def started(self, trial: RunningTrial) -> None:
        """See `Listener`."""
        self.listener.started(trial)

    def finished(self, record: TrialRecord, progress: Progress) -> None:
        """See `Listener`."""
        self.listener.finished(record, progress)

    def repeated(self, repeat: Repeat, progress: Progress) -> None:
        """See `Listener`."""
        self.listener.repeated(repeat, progress)

    def moment(self, progress: Progress) -> None:
        """See `Listener`."""
        self.listener.moment(progress)

    def said(self, message: str) -> None:
        """See `Listener`."""
        self.note(message)
        self.listener.said(message)
