"""Texts of the host: the kernel, Slurm, allocators, data loader processes, disks."""

from __future__ import annotations

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.signature import Certainty, Scope, Signature

_KERNEL = "Linux mm/oom_kill.c"
_SLURM = "Slurm slurmstepd; github.com/nextflow-io/nextflow/issues/5932"
_LOADER = "PyTorch torch/csrc/DataLoader.cpp"

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        Kind.HOST_OOM,
        r"[Oo]ut of memory: Killed process [0-9]+|oom-kill:constraint=|invoked oom-killer",
        f"{_KERNEL}; github.com/equinor/ert/issues/7797",
    ),
    Signature(
        Kind.HOST_OOM,
        r"Detected [0-9]+ oom[-_]kill event|task [0-9]+: Out Of Memory|Exceeded job memory limit",
        _SLURM,
    ),
    Signature(Kind.HOST_OOM, r"OOMKilled\b", "kubernetes.io, container status reasons"),
    Signature(
        Kind.HOST_OOM,
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)",
        "PyTorch c10/core/impl/alloc_cpu.cpp",
    ),
    Signature(
        Kind.HOST_OOM,
        r"^(?:\w+\.)*MemoryError\b|std::bad_alloc|\[Errno 12\] Cannot allocate memory",
        "Python MemoryError; C++ std::bad_alloc; Linux errno(3)",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.HOST_OOM,
        r"DataLoader worker \(pid [0-9]+\) is killed by signal: Killed",
        _LOADER,
    ),
    Signature(
        Kind.SHARED_MEMORY_FULL,
        r"DataLoader worker \(pid [0-9]+\) is killed by signal: Bus error"
        r"|Unexpected bus error encountered in worker",
        f"{_LOADER}; github.com/pytorch/pytorch/issues/5040",
    ),
    Signature(
        Kind.SHARED_MEMORY_FULL,
        r"unable to (?:allocate|open|mmap|resize|write to)[^\n]*(?:shared memory|</?torch_)",
        "PyTorch aten/src/ATen/MapAllocator.cpp",
        scope=Scope.EXCEPTION,
    ),
    # Semaphores and queues of Python's multiprocessing lie in /dev/shm.
    Signature(
        Kind.SHARED_MEMORY_FULL,
        r"\[Errno 28\]",
        "github.com/Plachtaa/VITS-fast-fine-tuning/issues/397",
        scope=Scope.EXCEPTION,
        frame=r"/multiprocessing/(?:synchronize|heap|shared_memory|queues)\.py in ",
    ),
    Signature(
        Kind.DISK_FULL,
        r"\[Errno 28\]|\[Errno 122\] Disk quota exceeded|StorageFull|No space left on device"
        r"|PytorchStreamWriter failed writing file",
        "Linux errno(3); github.com/h2oai/h2o-llmstudio/issues/214",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.KILLED,
        r"CANCELLED AT \S+ DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)",
        f"{_SLURM}; bigscience-workshop, shared/data/logs C04",
    ),
    Signature(
        Kind.KILLED,
        r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
        _SLURM,
        Certainty.SYMPTOM,
    ),
    Signature(
        Kind.CRASHED,
        r"DataLoader worker \(pid [0-9]+\) is killed by signal: ",
        _LOADER,
    ),
    Signature(
        Kind.CRASHED,
        r"DataLoader worker \(pid(?:\(s\))? [0-9, ]+\) exited unexpectedly",
        _LOADER,
        Certainty.CONSEQUENCE,
    ),
)
