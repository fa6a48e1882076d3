"""What each kind means to a person, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.kinds import Policy

# What a rank did, after `rank 3 `.
_VERBS: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.DEVICE_OOM: "ran out of memory",
        Kind.PINNED_HOST_OOM: "ran out of pinned host memory",
        Kind.HOST_OOM: "ran out of host memory",
        Kind.SHARED_MEMORY_FULL: "ran out of shared memory",
        Kind.SUSPECT_MACHINE: "found its device held by others",
        Kind.COLLECTIVE_TIMEOUT: "waited in vain for other ranks",
        Kind.DEVICE_ERROR: "had a device error",
        Kind.KERNEL_ERROR: "had an operator fail on its device",
        Kind.PORT_IN_USE: "found its port in use",
        Kind.DISK_FULL: "found the disk full",
        Kind.CONFIGURATION_REFUSED: "refused the configuration",
        Kind.ENVIRONMENT_BROKEN: "misses a part of its environment",
        Kind.DATA_ERROR: "could not read its data",
        Kind.NOT_FINITE: "met a loss or gradient that is not finite",
        Kind.KILLED: "was ended from outside",
        Kind.HUNG: "made no progress",
        Kind.LOST: "was lost",
        Kind.CRASHED: "failed",
    }
)

_ADVICE: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.DEVICE_OOM: "The point does not fit; the search goes on without it.",
        Kind.PINNED_HOST_OOM: (
            "The point pins more host memory than there is: offload less, or run fewer ranks on "
            "the host."
        ),
        Kind.HOST_OOM: (
            "The point needs more host memory than there is: offload less to the host, use fewer "
            "data loader workers, or raise the job's memory limit."
        ),
        Kind.SHARED_MEMORY_FULL: (
            "Give /dev/shm more room (docker: --shm-size) and remove files that ended runs left "
            "there; fewer data loader workers need less."
        ),
        Kind.SUSPECT_MACHINE: (
            "Look for other processes on the device with npu-smi info or nvidia-smi."
        ),
        Kind.COLLECTIVE_TIMEOUT: (
            "No rank says why. When it happens again with other points too, check the links "
            "between the devices; HCCL_EXEC_TIMEOUT, HCCL_CONNECT_TIMEOUT or the process group's "
            "timeout bound the wait."
        ),
        Kind.DEVICE_ERROR: "Take the device out of the sweep and have it checked.",
        Kind.KERNEL_ERROR: (
            "The point is not tried again: an operator did not take its shapes or types; "
            "ASCEND_LAUNCH_BLOCKING=1 or CUDA_LAUNCH_BLOCKING=1 names it."
        ),
        Kind.PORT_IN_USE: "It runs again on another port.",
        Kind.DISK_FULL: "Make room on the disk, then start the sweep again: it goes on.",
        Kind.CONFIGURATION_REFUSED: (
            "The point is not tried again; a rule in the space file would keep such points out."
        ),
        Kind.ENVIRONMENT_BROKEN: (
            "Install what is missing for trainer.python; on NPUs, source CANN's set_env.sh."
        ),
        Kind.DATA_ERROR: "Check the data set and its path: every point reads the same data.",
        Kind.NOT_FINITE: "The point is not tried again.",
        Kind.KILLED: "It may run again; check the time limit of the job that the sweep runs in.",
        Kind.HUNG: "The point is not tried again.",
        Kind.LOST: "It may run again.",
        Kind.CRASHED: "The point is not tried again; the log has the rest.",
    }
)

_PROBABLY = "was killed, most likely for want of host memory"
_STOP = "No trial can succeed before that."
_LOOK_IN_DMESG = "The kernel says in dmesg whether it was that. It may run once more."
_STALE_LOCK = (
    "It waited to build an extension: a lock file that a killed build left behind stops it for "
    "ever; delete the file `lock` below that folder."
)


def what_happened(kind: Kind, policy: Policy, rank: int | None, host: str | None) -> str:
    """A clause such as `rank 3 on node7 ran out of memory`."""
    who = "a rank" if rank is None else f"rank {rank}"
    place = "" if host is None else f" on {host}"
    verb = _PROBABLY if _is_bare_kill(kind, policy) else _VERBS[kind]
    return f"{who}{place} {verb}"


def what_to_do(kind: Kind, policy: Policy, quote: str) -> str:
    """A sentence or two; quote: the words that were found."""
    if _is_bare_kill(kind, policy):
        return _LOOK_IN_DMESG
    if kind is Kind.HUNG and "PyTorch extensions root" in quote:
        return _STALE_LOCK
    advice = _ADVICE[kind]
    return f"{advice} {_STOP}" if policy is Policy.STOP_SWEEP else advice


def _is_bare_kill(kind: Kind, policy: Policy) -> bool:
    """A SIGKILL that nobody owns to."""
    return kind is Kind.HOST_OOM and policy is Policy.RETRY
