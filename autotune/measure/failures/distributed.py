"""Texts of torch.distributed: the watchdog, the store, gloo, torchrun."""

from __future__ import annotations

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.kinds import Policy
from autotune.measure.failures.signature import Certainty, Scope, Signature

_WATCHDOG = "PyTorch ProcessGroupNCCL.cpp, torch_npu ProcessGroupHCCL.cpp"
_STORE = "PyTorch c10d/TCPStore.cpp, c10d/socket.cpp"
_GLOO = "gloo/transport/tcp/pair.cc, unbound_buffer.cc"
_TORCHRUN = "PyTorch distributed/elastic/multiprocessing"

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        Kind.PORT_IN_USE,
        r"server socket has failed to (?:bind|listen)[^\n]*(?:errno: 98|EADDRINUSE)",
        f"{_STORE}; github.com/pytorch/pytorch/issues/85604",
    ),
    Signature(
        Kind.PORT_IN_USE,
        r"server socket has failed to listen on any local network address",
        _STORE,
    ),
    Signature(
        Kind.PORT_IN_USE,
        r"EADDRINUSE|\[Errno 98\]|[Aa]ddress already in use",
        "Linux errno(3)",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"Watchdog caught collective operation timeout|Timeout at (?:NCCL|HCCL) work"
        r"|timed out in (?:blocking wait|monitoredBarrier|call to wait\(\))"
        r"|watchdog got stuck for [0-9]+ seconds|Heartbeat monitor timed out",
        _WATCHDOG,
        Certainty.SYMPTOM,
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"Timed out waiting [0-9]+ms for (?:recv|send) operation|connectFullMesh failed",
        f"{_GLOO}; github.com/pytorch/gloo/issues/511",
        Certainty.SYMPTOM,
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"client socket has timed out after|Timed out after [0-9]+ seconds waiting for"
        r"|got error: (?:Socket Timeout|wait timeout)|^(?:\w+\.)*Rendezvous\w+Error\b",
        f"{_STORE}; github.com/OpenRLHF/OpenRLHF/issues/1040",
        Certainty.SYMPTOM,
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"(?:NCCL|HCCL) operations have failed or timed out|taking the entire process down"
        r"|detected a dump signal from rank|Received a (?:global )?dump signal"
        r"|detected by watchdog at work|watchdog thread terminated with exception: \[Rank",
        _WATCHDOG,
        Certainty.CONSEQUENCE,
    ),
    # A client that tries again is no failure (github.com/meta-pytorch/torchcomms/pull/2358).
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"^(?![^\n]*retrying)[^\n]*(?:Connection closed by (?:peer|localRank)"
        r"|Connection reset by peer|Broken pipe|[Ff]ailed to recv, got 0 bytes)",
        f"{_GLOO}; {_STORE}",
        Certainty.CONSEQUENCE,
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"^torch\.distributed\.Dist(?:Backend|Network|Store)?Error\b",
        "PyTorch torch/distributed/__init__.py",
        Certainty.CONSEQUENCE,
        Scope.EXCEPTION,
    ),
    # torchrun tells how its ranks ended; a bare SIGKILL is most often the kernel's.
    Signature(
        Kind.HOST_OOM,
        r"exitcode *: -9\b|return code = -9\b|Signal 9 \(SIGKILL\) received|Signals\.SIGKILL: 9",
        f"{_TORCHRUN}; github.com/deepspeedai/DeepSpeed/issues/4239",
        Certainty.EXCEPTION,
        policy=Policy.RETRY,
    ),
    Signature(
        Kind.SHARED_MEMORY_FULL,
        r"exitcode *: -7\b|Signal 7 \(SIGBUS\) received",
        f"{_TORCHRUN}; signal(7)",
        Certainty.EXCEPTION,
    ),
    Signature(
        Kind.CRASHED,
        r"exitcode *: -11\b|return code = -11\b|Signal 11 \(SIGSEGV\) received",
        _TORCHRUN,
        Certainty.EXCEPTION,
    ),
    Signature(
        Kind.KILLED,
        r"SignalException: Process [0-9]+ got signal|^KeyboardInterrupt\b"
        r"|received SIGTERM, exiting",
        _TORCHRUN,
        Certainty.CONSEQUENCE,
    ),
    Signature(
        Kind.CRASHED,
        r"ChildFailedError\b|ProcessExitedException|Sending process [0-9]+ closing signal"
        r"|failed \(exitcode: -?[0-9]+\)",
        _TORCHRUN,
        Certainty.CONSEQUENCE,
    ),
)
