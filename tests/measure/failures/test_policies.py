"""What follows from each kind."""

from __future__ import annotations

import pytest

from autotune.measure.failures.diagnosis import LONGEST_QUOTE
from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import RULES, FailureKind, Policy, policy_of
from autotune.measure.failures.signature import Scope, Signature
from autotune.measure.failures.table import SIGNATURES
from autotune.measure.outcome import Status
from tests.measure.failures.made import error, of


def test_every_kind_has_a_policy() -> None:
    assert set(RULES) == set(FailureKind)


def test_only_the_devices_memory_is_a_constraint() -> None:
    """The search knows the device's limit alone; offloading moves memory to the host."""
    assert [kind for kind in FailureKind if RULES[kind].policy is Policy.CONSTRAINT] == [
        FailureKind.DEVICE_OOM
    ]


@pytest.mark.parametrize(
    ("policy", "status", "may_retry"),
    [
        (Policy.CONSTRAINT, Status.OOM, False),
        (Policy.RETRY, Status.INFRASTRUCTURE, True),
        (Policy.SUSPECT_DEVICE, Status.INFRASTRUCTURE, True),
        (Policy.NEVER_AGAIN, Status.FAILED, False),
        (Policy.STOP_SWEEP, Status.INFRASTRUCTURE, True),
    ],
)
def test_how_a_trial_stands(policy: Policy, status: Status, may_retry: bool) -> None:
    assert policy.status is status
    assert status.may_retry is may_retry


@pytest.mark.parametrize(
    "kind",
    [FailureKind.ENVIRONMENT_BROKEN, FailureKind.DATA_ERROR, FailureKind.SHARED_MEMORY_FULL],
)
def test_what_meets_the_baseline_meets_every_trial(kind: FailureKind) -> None:
    assert policy_of(kind, is_baseline=True) is Policy.STOP_SWEEP
    assert policy_of(kind, is_baseline=False) is Policy.NEVER_AGAIN


def test_a_stopped_sweep_says_so() -> None:
    rank = RankEvidence(0, (error(0, "ModuleNotFoundError: No module named 'mindspeed'"),))
    found = of(rank, is_baseline=True)
    assert found.policy is Policy.STOP_SWEEP
    assert found.explanation.endswith("No trial can succeed before that.")


def test_a_quote_is_one_line_of_bounded_length() -> None:
    rank = RankEvidence(0, (error(0, f"KeyError: {'long ' * 200}"),))
    assert len(of(rank).quote) == LONGEST_QUOTE


def test_every_signature_says_where_it_comes_from_and_stays_in_its_line() -> None:
    assert all(signature.source for signature in SIGNATURES)
    for signature in SIGNATURES:
        if signature.scope is Scope.LINE:
            assert signature.find("\n\n  \n") == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"source": ""}, "needs a source"),
        ({"pattern": "a[^b]c"}, "exclude"),
        ({"frame": "x"}, "only an exception"),
    ],
)
def test_a_bad_signature_is_refused(options: dict[str, str], says: str) -> None:
    good = {"pattern": "a", "source": "s"}
    with pytest.raises(ValueError, match=says):
        Signature(FailureKind.CRASHED, **{**good, **options})  # type: ignore[arg-type]
