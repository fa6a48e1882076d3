"""Texts of GPUs: PyTorch's CUDA allocator, the CUDA runtime, the NVIDIA driver, NCCL."""

from __future__ import annotations

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.signature import Certainty, Scope, Signature

_RUNTIME = "CUDA runtime API, cudaError_t and cudaGetErrorString"
_ALLOCATOR = "PyTorch c10/cuda/CUDACachingAllocator.cpp"
_NCCL = "NCCL src/misc, ncclGetErrorString; PyTorch NCCLUtils.hpp"
_XID = "docs.nvidia.com/deploy/xid-errors"

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        Kind.PINNED_HOST_OOM,
        r"\bout of memory\b",
        "PyTorch CachingHostAllocator; github.com/mittagessen/kraken/issues/642",
        scope=Scope.EXCEPTION,
        frame=r"pin_memory",
    ),
    Signature(
        Kind.PINNED_HOST_OOM,
        r"could not allocate pinned host memory|(?:cudaHostAlloc|cudaHostRegister|cudaMallocHost)"
        r"\b[^\n]*out of memory",
        "github.com/talmolab/sleap/issues/2001",
    ),
    # A size that no tensor has: a value was overwritten, or a broadcast never came.
    Signature(
        Kind.KERNEL_ERROR,
        r"out of memory\. Tried to allocate more than 1EB memory",
        "github.com/NVIDIA/nccl/issues/1284; flash-linear-attention-npu/issues/149",
        Certainty.CONSEQUENCE,
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"(?:CUDA|HIP|XPU|MUSA) out of memory\. Tried to allocate [0-9]",
        _ALLOCATOR,
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"^(?:\w+\.)*OutOfMemoryError\b(?![^\n]*more than 1EB)"
        r"|^(?:\w+\.)*RuntimeError: (?:CUDA|NPU|HIP|XPU|MUSA) out of memory"
        r"(?![^\n]*more than 1EB)",
        _ALLOCATOR,
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"CUDA (?:driver )?error: out of memory|cuda runtime error \(2\) : out of memory"
        r"|Cuda failure (?:[0-9]+ )?'out of memory'|CUDA_ERROR_OUT_OF_MEMORY"
        r"|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|Failed to CUDA calloc [0-9]+ bytes",
        f"{_RUNTIME}; github.com/NVIDIA/nccl/issues/1235",
    ),
    Signature(
        Kind.DEVICE_ERROR,
        r"uncorrectable (?:ECC|NVLink) error|CUDA_ERROR_ECC_UNCORRECTABLE|fallen off the bus"
        r"|CUDA error: hardware stack error",
        f"{_RUNTIME}; github.com/vllm-project/vllm/issues/5222",
    ),
    # Double-bit ECC, row remapping, NVLink, bus, contained and uncontained ECC, GSP. Xids 13, 31,
    # 43 and 45 come from what the application did.
    Signature(
        Kind.DEVICE_ERROR,
        r"NVRM: Xid \(PCI:[^\n)]*\): (?:48|62|64|74|79|92|94|95|119|120|140)\b",
        _XID,
    ),
    Signature(
        Kind.SUSPECT_MACHINE,
        r"CUDA-capable devices? ?(?:\(s\) is/)?are busy or unavailable",
        f"{_RUNTIME}; github.com/torch/cutorch/issues/441",
    ),
    Signature(
        Kind.KERNEL_ERROR,
        r"an illegal memory access was encountered|CUDA error: misaligned address"
        r"|an illegal instruction was encountered|device-side assert triggered"
        r"|CUDA error: unspecified launch failure|too many resources requested for launch"
        r"|CUDA error: invalid device function|the launch timed out and was terminated",
        f"{_RUNTIME}; github.com/axolotl-ai-cloud/axolotl/issues/1473",
    ),
    Signature(
        Kind.ENVIRONMENT_BROKEN,
        r"no kernel image is available for execution on the device"
        r"|CUDA driver version is insufficient for CUDA runtime version"
        r"|no CUDA-capable device is detected|CUDA error: invalid device ordinal"
        r"|NCCL WARN Duplicate GPU detected",
        f"{_RUNTIME}; github.com/pytorch/examples/issues/1257",
    ),
    Signature(
        Kind.ENVIRONMENT_BROKEN,
        r"No CUDA GPUs are available|Found no NVIDIA driver on your system"
        r"|Torch not compiled with CUDA enabled|NVIDIA driver on your system is too old",
        "PyTorch torch/cuda/__init__.py",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.SHARED_MEMORY_FULL,
        r"failed to extend /dev/shm/nccl-|NCCL WARN Call to posix_fallocate failed"
        r"|Error while creating shared memory segment",
        "github.com/NVIDIA/nccl/issues/290",
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"Got completion from peer [^\n]* with (?:error|status)|ncclSystemError:"
        r"|socketStartConnect: exceeded timeouts",
        f"{_NCCL}; github.com/NVIDIA/nccl-tests/issues/252",
        Certainty.SYMPTOM,
    ),
    # An abort makes NCCL report system errors that are not the cause (pytorch/pull/64241).
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"ncclRemoteError|NCCL communicator was aborted|Connection closed by remote peer"
        r"|unhandled system error|Socket recv failed while polling",
        f"{_NCCL}; github.com/NVIDIA/nccl/issues/795",
        Certainty.CONSEQUENCE,
    ),
    Signature(
        Kind.KERNEL_ERROR,
        r"CUDA error: \w|unhandled cuda error|CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+",
        _RUNTIME,
        Certainty.CONSEQUENCE,
    ),
)
