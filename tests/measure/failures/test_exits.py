"""Ranks that leave no text: what their exit codes and the end of the trial say."""

from __future__ import annotations

import signal

import pytest

from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.outcome import Status
from autotune.ports import EndKind, RankExit
from tests.measure.failures.made import end, of

CLOSED = "RuntimeError: Connection closed by peer [127.0.0.1]:1\n"


@pytest.mark.parametrize(
    ("code", "kind", "policy"),
    [
        (-signal.SIGKILL, FailureKind.HOST_OOM, Policy.RETRY),
        (128 + signal.SIGKILL, FailureKind.HOST_OOM, Policy.RETRY),
        (-signal.SIGBUS, FailureKind.SHARED_MEMORY_FULL, Policy.NEVER_AGAIN),
        (-signal.SIGSEGV, FailureKind.CRASHED, Policy.NEVER_AGAIN),
        (-signal.SIGABRT, FailureKind.CRASHED, Policy.NEVER_AGAIN),
        (-signal.SIGTERM, FailureKind.KILLED, Policy.RETRY),
        (-signal.SIGILL, FailureKind.ENVIRONMENT_BROKEN, Policy.NEVER_AGAIN),
        (127, FailureKind.ENVIRONMENT_BROKEN, Policy.NEVER_AGAIN),
        (2, FailureKind.CONFIGURATION_REFUSED, Policy.NEVER_AGAIN),
        (1, FailureKind.CRASHED, Policy.NEVER_AGAIN),
    ],
)
def test_a_rank_that_says_nothing(code: int, kind: FailureKind, policy: Policy) -> None:
    exits = (RankExit(0, -15, by_us=True), RankExit(1, code))
    ranks = (RankEvidence(0, log=CLOSED), RankEvidence(1))
    found = of(*ranks, end=end(EndKind.RANK_FAILED, *exits))
    assert (found.kind, found.policy, found.rank) == (kind, policy, 1)
    assert found.where == "exit code"


def test_a_signal_has_its_name() -> None:
    found = of(RankEvidence(3), end=end(EndKind.RANK_FAILED, RankExit(3, -9)))
    assert found.quote == "rank 3 was ended by SIGKILL"
    assert "dmesg" in found.advice


def test_ranks_that_we_ended_say_nothing() -> None:
    exits = (RankExit(0, 1), RankExit(1, -9, by_us=True))
    assert of(RankEvidence(0), end=end(EndKind.RANK_FAILED, *exits)).rank == 0


def test_a_text_that_names_the_cause_over_a_signal() -> None:
    text = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup.\n"
    ended = end(EndKind.RANK_FAILED, RankExit(0, -9))
    found = of(RankEvidence(0, log=text), end=ended)
    assert (found.kind, found.policy, found.where) == (
        FailureKind.HOST_OOM,
        Policy.NEVER_AGAIN,
        "rank0.log",
    )


def test_a_text_of_another_rank_over_a_signal() -> None:
    exits = (RankExit(0, -9), RankExit(1, 1))
    ranks = (RankEvidence(0), RankEvidence(1, log="MemoryError: no more\n"))
    assert of(*ranks, end=end(EndKind.RANK_FAILED, *exits)).where == "rank1.log"


def test_a_plain_exit_adds_nothing_to_what_the_rank_says() -> None:
    ended = end(EndKind.RANK_FAILED, RankExit(0, 1))
    found = of(RankEvidence(0, log=CLOSED), end=ended)
    assert (found.kind, found.policy) == (FailureKind.COLLECTIVE_TIMEOUT, Policy.RETRY)


def test_an_abort_is_not_the_cause_where_a_text_is() -> None:
    text = "ZeroDivisionError: division by zero\n"
    ended = end(EndKind.RANK_FAILED, RankExit(0, -6))
    assert of(RankEvidence(0, log=text), end=ended).quote.startswith("ZeroDivisionError")


def test_a_bare_sigkill_on_a_cpu_is_no_constraint() -> None:
    found = of(
        RankEvidence(0, steps=4),
        device="cpu",
        end=end(EndKind.RANK_FAILED, RankExit(0, -9)),
    )
    assert (found.kind, found.status) == (FailureKind.HOST_OOM, Status.INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("kind", "failure", "status"),
    [
        (EndKind.HUNG, FailureKind.HUNG, Status.HUNG),
        (EndKind.LOST, FailureKind.LOST, Status.INFRASTRUCTURE),
        (EndKind.STOPPED, FailureKind.KILLED, Status.INFRASTRUCTURE),
        (EndKind.RANK_FAILED, FailureKind.CRASHED, Status.FAILED),
    ],
)
def test_what_the_launcher_says_where_no_rank_does(
    kind: EndKind, failure: FailureKind, status: Status
) -> None:
    found = of(RankEvidence(0), end=end(kind, reason="the launcher's words"))
    assert (found.kind, found.status, found.rank) == (failure, status, None)
    assert (found.quote, found.where) == ("the launcher's words", "launcher")


def test_a_hang_shows_the_last_words_of_the_slowest_rank() -> None:
    ranks = (RankEvidence(0, log="step 9\n", steps=9), RankEvidence(1, log="step 3\nwaits\n"))
    found = of(*ranks, end=end(EndKind.HUNG))
    assert (found.rank, found.quote) == (1, "waits")


def test_a_hang_after_an_error_is_that_error() -> None:
    text = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    ended = end(EndKind.HUNG, RankExit(0, -9, by_us=True))
    assert of(RankEvidence(0, log=text), end=ended).kind is FailureKind.DEVICE_ERROR


def test_a_lost_trial_whose_port_was_taken() -> None:
    text = "RuntimeError: The server socket has failed to listen on any local network address.\n"
    found = of(RankEvidence(0, log=CLOSED + text), end=end(EndKind.LOST))
    assert (found.kind, found.policy) == (FailureKind.PORT_IN_USE, Policy.RETRY)
    assert of(RankEvidence(0, log=CLOSED), end=end(EndKind.LOST)).kind is FailureKind.LOST


def test_a_taken_port_is_not_the_points_fault_and_hides_no_error() -> None:
    taken = "RuntimeError: The server socket has failed to listen. EADDRINUSE\n"
    ended = end(EndKind.RANK_FAILED, RankExit(0, 1, by_us=False))
    found = of(RankEvidence(0, log=taken), end=ended)
    assert (found.kind, found.policy) == (FailureKind.PORT_IN_USE, Policy.RETRY)
    warned = "tensorboard: Address already in use\n"
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    found = of(RankEvidence(0, log=warned + text), end=ended)
    assert found.kind is FailureKind.DEVICE_OOM
