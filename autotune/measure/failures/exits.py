"""What exit codes say: the little that is known where no text is left."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable, Mapping

from autotune.measure.failures.evidence import EXIT_CODE, Finding
from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.failures.signature import Certainty
from autotune.ports import RankExit

_SHELL_SIGNALS = range(129, 160)  # a shell or a container gives 128 + n for signal n
_NOT_RUN = (126, 127)  # not executable, not found: sh(1)
_REFUSED = 2  # argparse, and Python for a script that it cannot open

# A SIGKILL that nobody here sent is the kernel's in most reports, but no proof: the point may
# run once more. A bus error is a page of shared memory or of a mapped file without room.
_SIGNALS: Mapping[int, tuple[FailureKind, Certainty, Policy | None]] = {
    signal.SIGKILL: (FailureKind.HOST_OOM, Certainty.CAUSE, Policy.RETRY),
    signal.SIGBUS: (FailureKind.SHARED_MEMORY_FULL, Certainty.CAUSE, None),
    signal.SIGSEGV: (FailureKind.CRASHED, Certainty.EXCEPTION, None),
    signal.SIGFPE: (FailureKind.CRASHED, Certainty.EXCEPTION, None),
    signal.SIGILL: (FailureKind.ENVIRONMENT_BROKEN, Certainty.EXCEPTION, None),
    # An abort follows on a text that says why, or on a watchdog's verdict.
    signal.SIGABRT: (FailureKind.CRASHED, Certainty.SYMPTOM, None),
    signal.SIGTERM: (FailureKind.KILLED, Certainty.SYMPTOM, None),
    signal.SIGINT: (FailureKind.KILLED, Certainty.SYMPTOM, None),
    signal.SIGHUP: (FailureKind.KILLED, Certainty.SYMPTOM, None),
    signal.SIGXCPU: (FailureKind.KILLED, Certainty.SYMPTOM, None),
}


def search_exits(exits: Iterable[RankExit], explained: Collection[int]) -> list[Finding]:
    """What the codes of the ranks say that ended by themselves.

    explained: ranks whose records or logs say something. Of those only a signal counts.
    """
    found = []
    for exit_ in exits:
        if exit_.code == 0 or exit_.by_us:
            continue
        number = signal_of(exit_.code)
        if number is not None:
            found.append(_signalled(exit_.rank, number))
        elif exit_.rank not in explained:
            found.append(_exited(exit_))
    return found


def signal_of(code: int) -> int | None:
    """The signal that ended a process with this exit code, None where none did."""
    if code < 0:
        return -code
    return code - 128 if code in _SHELL_SIGNALS else None


def _signalled(rank: int, number: int) -> Finding:
    unknown = (FailureKind.CRASHED, Certainty.SYMPTOM, None)
    kind, certainty, policy = _SIGNALS.get(number, unknown)
    quote = f"rank {rank} was ended by {_signal_name(number)}"
    return Finding(kind, certainty, rank, EXIT_CODE, quote, policy=policy)


def _exited(exit_: RankExit) -> Finding:
    if exit_.code in _NOT_RUN:
        kind, certainty = FailureKind.ENVIRONMENT_BROKEN, Certainty.EXCEPTION
    elif exit_.code == _REFUSED:
        kind, certainty = FailureKind.CONFIGURATION_REFUSED, Certainty.SYMPTOM
    else:
        kind, certainty = FailureKind.CRASHED, Certainty.SYMPTOM
    quote = f"rank {exit_.rank} exited with {exit_.code}"
    return Finding(kind, certainty, exit_.rank, EXIT_CODE, quote)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
