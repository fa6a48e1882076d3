"""The kinds of failure, and what the sweep does about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from autotune.measure.outcome import Status


class FailureKind(StrEnum):
    """What went wrong, at its origin."""

    DEVICE_OOM = "device_oom"  # the trial filled the device that it trains on
    PINNED_HOST_OOM = "pinned_host_oom"  # no page-locked host memory was left
    HOST_OOM = "host_oom"  # the host's memory was used up
    SHARED_MEMORY_FULL = "shared_memory_full"  # /dev/shm, which loaders and NCCL share
    SUSPECT_MACHINE = "suspect_machine"  # memory ran out, or a device was held, by others
    COLLECTIVE_TIMEOUT = "collective_timeout"  # a collective waited in vain, or its link broke
    DEVICE_ERROR = "device_error"  # the hardware or its driver
    KERNEL_ERROR = "kernel_error"  # an operator failed on a sound device
    PORT_IN_USE = "port_in_use"
    DISK_FULL = "disk_full"
    CONFIGURATION_REFUSED = "configuration_refused"  # by the trainer, before it trained
    ENVIRONMENT_BROKEN = "environment_broken"  # a module, library, driver or variable
    DATA_ERROR = "data_error"
    NOT_FINITE = "not_finite"  # the loss or a gradient, and the trainer gave up
    KILLED = "killed"  # from outside: a scheduler's limit, a person
    HUNG = "hung"  # no progress, and nothing says why
    LOST = "lost"  # the node or what watches the ranks on it
    CRASHED = "crashed"  # of a cause that is in no list here


class Policy(StrEnum):
    """What follows from a failure."""

    CONSTRAINT = "constraint"  # a property of the point: counts as out of memory
    RETRY = "retry"  # infrastructure: the same point may run again
    SUSPECT_DEVICE = "suspect_device"  # retry elsewhere, and name the device
    NEVER_AGAIN = "never_again"  # the point is refused
    STOP_SWEEP = "stop_sweep"  # no trial can succeed before a person mends it

    @property
    def status(self) -> Status:
        """How the trial stands in the journal.

        A stopped sweep's trial is not the point's fault: it may run when the sweep goes on.
        """
        if self is Policy.CONSTRAINT:
            return Status.OOM
        return Status.FAILED if self is Policy.NEVER_AGAIN else Status.INFRASTRUCTURE


@dataclass(frozen=True)
class Rule:
    """The policy of a kind, and of the same kind on the baseline, which every trial resembles."""

    policy: Policy
    on_baseline: Policy


def _rule(policy: Policy, on_baseline: Policy | None = None) -> Rule:
    return Rule(policy, on_baseline or policy)


# Host memory is no constraint: the search knows one limit, the device's, and a point that moves
# memory from the device to the host is small there when it breaks here.
RULES: Mapping[FailureKind, Rule] = MappingProxyType(
    {
        FailureKind.DEVICE_OOM: _rule(Policy.CONSTRAINT, Policy.SUSPECT_DEVICE),
        FailureKind.PINNED_HOST_OOM: _rule(Policy.NEVER_AGAIN, Policy.SUSPECT_DEVICE),
        FailureKind.HOST_OOM: _rule(Policy.NEVER_AGAIN, Policy.SUSPECT_DEVICE),
        FailureKind.SHARED_MEMORY_FULL: _rule(Policy.NEVER_AGAIN, Policy.STOP_SWEEP),
        FailureKind.SUSPECT_MACHINE: _rule(Policy.SUSPECT_DEVICE),
        FailureKind.COLLECTIVE_TIMEOUT: _rule(Policy.RETRY),
        FailureKind.DEVICE_ERROR: _rule(Policy.SUSPECT_DEVICE),
        FailureKind.KERNEL_ERROR: _rule(Policy.NEVER_AGAIN),
        FailureKind.PORT_IN_USE: _rule(Policy.RETRY),
        FailureKind.DISK_FULL: _rule(Policy.STOP_SWEEP),
        FailureKind.CONFIGURATION_REFUSED: _rule(Policy.NEVER_AGAIN),
        # A module that only some points need must not end the sweep.
        FailureKind.ENVIRONMENT_BROKEN: _rule(Policy.NEVER_AGAIN, Policy.STOP_SWEEP),
        # All points read the same data window.
        FailureKind.DATA_ERROR: _rule(Policy.NEVER_AGAIN, Policy.STOP_SWEEP),
        FailureKind.NOT_FINITE: _rule(Policy.NEVER_AGAIN),
        FailureKind.KILLED: _rule(Policy.RETRY),
        FailureKind.HUNG: _rule(Policy.NEVER_AGAIN),
        FailureKind.LOST: _rule(Policy.RETRY),
        FailureKind.CRASHED: _rule(Policy.NEVER_AGAIN),
    }
)


def policy_of(kind: FailureKind, is_baseline: bool) -> Policy:
    """What follows from a failure of this kind."""
    rule = RULES[kind]
    return rule.on_baseline if is_baseline else rule.policy
