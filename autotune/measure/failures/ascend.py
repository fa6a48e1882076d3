"""Texts of NPUs: CANN's runtime and drivers, HCCL, torch_npu.

CANN reports in two ways: by a component's code (`EI0002`: I for HCCL, J for HCCP, L for the
driver, E for the runtime, Z for operators) and by the runtime's six-digit code. torch_npu wraps
both in an exception of several lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.signature import Certainty, Signature

_HCOMM = "CANN hcomm, error message table (github.com/zstar1003/hccl-hcomm-annotated)"
_ACL = "CANN rt_error_codes.h; hiascend.com, aclError return codes"
_TORCH_NPU = "torch_npu csrc/core/npu/NPUException.cpp"
_ALLOCATOR = "torch_npu csrc/core/npu/NPUCachingAllocator.cpp, NPUWorkspaceAllocator.cpp"

_CAUSE, _SYMPTOM, _CONSEQUENCE = Certainty.CAUSE, Certainty.SYMPTOM, Certainty.CONSEQUENCE

# Codes of components, as in `EI0002: ...`, `EI0006: [PID: 12] ...`, `EZ9999[PID: 12]` and
# `Device_Absent/Abnormal(EL0001): ...`; a solution text that says "search for EI0002" is none.
_COMPONENTS: Mapping[tuple[Kind, Certainty], tuple[str, ...]] = {
    (Kind.DEVICE_OOM, _CAUSE): ("EL0004", "EI0007", "EI0011"),
    (Kind.SUSPECT_MACHINE, _CAUSE): ("EJ0001",),
    (Kind.PORT_IN_USE, _CAUSE): ("EI0019", "EI0020", "EJ0003"),
    # No device; transport and peer-to-peer not set up; a network port is down.
    (Kind.DEVICE_ERROR, _CAUSE): ("EL0001", "EI0009", "EI0010", "EJ0002"),
    # Environment variables, rank tables, versions and addresses.
    (Kind.ENVIRONMENT_BROKEN, _CAUSE): (
        *("EI0001", "EI0004", "EI0008", "EI0014", "EI0016", "EI0017", "EJ0004"),
    ),
    # A collective's arguments are wrong, or differ between ranks.
    (Kind.CRASHED, _CAUSE): ("EI0003", "EI0005"),
    # Notify, socket, copy, completion queue, set-up: the peer did not answer.
    (Kind.COLLECTIVE_TIMEOUT, _SYMPTOM): (
        *("EI0002", "EI0006", "EI0012", "EI0013", "EI0015", "EI0018"),
    ),
}

# Codes of the runtime, as in `error code is 507018`, `runtime result = 507018`, `failed: 507033`.
# What a rank sees of another's failure, or of its own in general terms, is a symptom.
_RUNTIME: Mapping[tuple[Kind, Certainty], tuple[int, ...]] = {
    (Kind.DEVICE_OOM, _CAUSE): (207001, 207018),
    # No device; lost heartbeat; memory that errors cannot be corrected in; ECC; link; driver.
    (Kind.DEVICE_ERROR, _CAUSE): (207004, 507010, 507053, 507054, 507056, 507899, 507901),
    # Task scheduler, DMA, device setup; a fault that another device is suspected of.
    (Kind.DEVICE_ERROR, _SYMPTOM): (507001, 507013, 507033, 507055, 507057, 507904),
    # Exceptions of AI Core, vector core and ffts+, and their traps and overflows.
    (Kind.KERNEL_ERROR, _CAUSE): (
        *(507015, 507016, 507035, 507036, 507042, 507043, 507044, 507045),
        *(507049, 507050),
    ),
    (Kind.KERNEL_ERROR, _SYMPTOM): (507000, 507011, 507012, 507014, 507017, 507018, 507034),
    (Kind.COLLECTIVE_TIMEOUT, _SYMPTOM): (107019, 107020, 507046, 507047, 507048),
    # The device's tasks were aborted for another failure.
    (Kind.COLLECTIVE_TIMEOUT, _CONSEQUENCE): (107022, 107023, 107035),
    (Kind.ENVIRONMENT_BROKEN, _CAUSE): (507008,),
}


def _signatures() -> Iterator[Signature]:
    yield from _TEXTS
    for (kind, certainty), components in _COMPONENTS.items():
        pattern = rf"(?:{'|'.join(components)})(?::|\[PID|\))"
        yield Signature(kind, pattern, _HCOMM, certainty)
    for (kind, certainty), codes in _RUNTIME.items():
        any_code = "|".join(str(code) for code in codes)
        pattern = rf"(?:error code is|runtime result =|failed ?:) (?:{any_code})\b"
        yield Signature(kind, pattern, _ACL, certainty, is_code=True)
    yield from _WRAPPERS


_TEXTS = (
    Signature(
        Kind.PINNED_HOST_OOM,
        r"Malloc pin memory failed",
        "torch_npu csrc/core/npu/CachingHostAllocator.cpp",
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"NPU out of memory\. (?:Tried to allocate [0-9]|NPUWorkspaceAllocator tried to allocate"
        r"|Allocation was preemptively rejected|device id:)",
        _ALLOCATOR,
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"Failed to allocate (?:memory\.|resource ?\[|\[?[0-9]+\]? bytes of NPU memory)",
        f"{_TORCH_NPU} isCannOOM",
    ),
    Signature(Kind.DEVICE_OOM, r"ERR[0-9]{2}006 \w+ memory error", "torch_npu ErrCode.MEMORY"),
    Signature(
        Kind.DEVICE_ERROR,
        r"NPU function error: +(?:UCE ERROR|HBM MULTI BIT ECC ERROR|(?:HCCS|UB) LINK ERROR)"
        r"|reason=\[?(?:device mem error|hbm Multi-bit ECC error|(?:device network )?link error)",
        _TORCH_NPU,
    ),
    Signature(
        Kind.DEVICE_ERROR,
        r"NPU function error: +(?:SUSPECT MEM ERROR|SUSPECT REMOTE ERROR|HCCL OP RETRY FAILED)"
        r"|reason=\[?(?:suspect (?:device mem|remote) error|hccl op retry failed)",
        _TORCH_NPU,
        _SYMPTOM,
    ),
    Signature(
        Kind.DEVICE_ERROR,
        r"lost heartbeat\b",
        "github.com/vllm-project/vllm-ascend/issues/8186",
    ),
    Signature(
        Kind.DEVICE_ERROR,
        r"there is a sdma error",
        "github.com/vllm-project/vllm-ascend/issues/116",
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"hccl fftsplus (?:task )?timeout",
        "github.com/Ascend/pytorch/issues/54; github.com/hiyouga/LlamaFactory/issues/5347",
        _SYMPTOM,
    ),
    Signature(
        Kind.KERNEL_ERROR,
        r"there is an? (?:exception of fftsplus )?(?:aicore|aivec) error"
        r"|\[(?:aicore|vector core) exception\]",
        "github.com/huawei-csl/pto-dsl/pull/90",
    ),
    Signature(
        Kind.PORT_IN_USE,
        r"\[HcclSocket\]\[Listen\][^\n]*specific port\[[0-9]+\] fail",
        "github.com/vllm-project/vllm-ascend/issues/4725",
    ),
    # Python packages that CANN imports; the package of operators for this kind of device.
    Signature(
        Kind.ENVIRONMENT_BROKEN,
        r"\[Init\]\[Env\]init env failed|Op \w+ does not has any binary",
        "github.com/Ascend/pytorch/issues/7; github.com/hiyouga/LlamaFactory/issues/3779",
    ),
    Signature(
        Kind.KERNEL_ERROR,
        r"call aclnn\w+ failed, error code is [135]61[0-9]{3}\b",
        "hiascend.com, aclnn return codes: 161xxx parameters, 361xxx runtime, 561xxx internal",
    ),
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"HCCL function error: [^\n]*error code is (?:9|11|12|13|14|19|21)\b",
        "CANN hccl_types.h: timeout, connect, transfer, network, error cqe",
        _SYMPTOM,
    ),
    Signature(
        Kind.DEVICE_OOM,
        r"HCCL function error: [^\n]*error code is 24\b",
        "CANN hccl_types.h: HCCL_E_OOM",
    ),
)

# What is put around the text that names the cause; alone it says only where it happened.
_WRAPPERS = (
    Signature(
        Kind.COLLECTIVE_TIMEOUT,
        r"HCCL function error:|ERR02200 DIST call hccl api failed|NPU function error: +FORCE STOP"
        r"|OPS function error: Hccl",
        _TORCH_NPU,
        _CONSEQUENCE,
    ),
    Signature(
        Kind.KERNEL_ERROR,
        r"E[1-9A-Z]9999(?::|\[PID)|E(?:E1001|L0003)(?::|\))|(?:NPU|OPS) function error:"
        r"|The Inner error is reported as above|ACL stream synchronize failed",
        _TORCH_NPU,
        _CONSEQUENCE,
    ),
)

SIGNATURES: tuple[Signature, ...] = tuple(_signatures())
