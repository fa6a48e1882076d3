"""SIGTERM and SIGHUP as Ctrl-C: who ends a program politely should find what Ctrl-C leaves."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

CLOSING_S = 10.0
"""So long a stopped sweep is given to close."""

_Handlers = dict[signal.Signals, Any]


class StopSignals:
    """The signals that stop a sweep, and what they did before."""

    def __init__(self) -> None:
        self._before: _Handlers = {}

    def interrupt(self) -> None:
        """SIGTERM raises KeyboardInterrupt from now on, as does SIGHUP, which a terminal sends.

        Not where SIGHUP is ignored, as below nohup.
        """
        self._set(signal.SIGTERM, _interrupt)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            self._set(signal.SIGHUP, _interrupt)

    def wait_for_closing(self) -> None:
        """From now on none of them, Ctrl-C among them, gets into the way of the closing.

        That ends by itself within seconds; half of it done, Ray would end this process. Only
        where it takes longer do they raise KeyboardInterrupt again.
        """
        since = time.monotonic()

        def interrupt_what_hangs(number: int, frame: FrameType | None) -> None:
            if time.monotonic() > since + CLOSING_S:
                raise KeyboardInterrupt

        # No SIG_IGN, which processes that are started now would inherit.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._set(number, interrupt_what_hangs)

    def restore(self) -> None:
        """Everything as it was."""
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _set(self, number: signal.Signals, handler: Any) -> None:
        before = signal.signal(number, handler)
        self._before.setdefault(number, before)


@contextlib.contextmanager
def interrupt_on_sigterm() -> Iterator[StopSignals]:
    """Has SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile."""
    signals = StopSignals()
    signals.interrupt()
    try:
        yield signals
    finally:
        signals.restore()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
