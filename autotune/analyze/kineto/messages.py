"""Names, groups and sizes of communication, as traces of different versions have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

# nccl's and rccl's kernels: ncclKernel_AllReduce_RING_LL_Sum_float, ncclDevKernel_SendRecv, ...
_KERNEL = re.compile(r"\b[nr]ccl\w*?Kernel_?([A-Za-z0-9]*)")
# Ranges that torch's process groups open for a collective.
_HOST_RANGE = re.compile(r"(?:gloo|mpi|ucc|nccl):")
# Operators that start a collective or wait for one.
_HOST_OPERATOR = re.compile(r"_?c10d(?:_functional)?::")

# Bytes of an element, by the names of torch's ScalarType and of C++ in lower case.
_ELEMENT_BYTES = {
    **dict.fromkeys(("double", "long", "long int", "complexfloat"), 8),
    **dict.fromkeys(("float", "int", "unsigned int"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "c10::half", "c10::bfloat16", "short int"), 2),
    **dict.fromkeys(("byte", "char", "bool", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "c10::float8_e4m3fn", "c10::float8_e5m2"), 1),
    "complexdouble": 16,
}


def is_communication_kernel(name: str, args: Mapping[str, Any]) -> bool:
    """Whether a kernel moves data between ranks."""
    return "Collective name" in args or _KERNEL.search(name) is not None


def is_communication_range(name: str) -> bool:
    """Whether a range on the host is the run of one collective, such as `gloo:all_reduce`."""
    return _HOST_RANGE.match(name) is not None


def is_communication_operator(name: str) -> bool:
    """Whether a host operator starts a collective or waits for it, such as `c10d::allreduce_`."""
    return _HOST_OPERATOR.match(name) is not None


def kernel_operation(name: str, args: Mapping[str, Any]) -> str:
    """`nccl:` and the collective as recorded, else as the kernel is called."""
    recorded = args.get("Collective name")
    if recorded:
        return f"nccl:{recorded}"
    match = _KERNEL.search(name)
    return f"nccl:{match.group(1)}" if match and match.group(1) else "nccl"


def group_of(args: Mapping[str, Any]) -> str:
    """The process group by name and description, else by its ranks, else empty."""
    name = args.get("Process Group Name")
    description = args.get("Process Group Description")
    if name in (None, ""):
        return str(args.get("Process Group Ranks") or "")
    if description in (None, "", "undefined", name):
        return str(name)
    return f"{name} ({description})"


def kernel_bytes(args: Mapping[str, Any]) -> float | None:
    """The larger of the message that goes in and the one that comes out; None if unknown."""
    element = _ELEMENT_BYTES.get(str(args.get("dtype")).lower())
    counts = [args.get("In msg nelems"), args.get("Out msg nelems")]
    known = [count for count in counts if isinstance(count, int) and count > 0]
    return float(max(known) * element) if element and known else None


def host_bytes(args: Mapping[str, Any]) -> float | None:
    """The size of all input tensors, where shapes were recorded; None if unknown."""
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list) or len(shapes) != len(types):
        return None
    size = 0
    for shape, name in zip(shapes, types, strict=True):
        element = _ELEMENT_BYTES.get(str(name).lower())
        if element is None or not isinstance(shape, list):
            continue
        if all(isinstance(length, int) for length in shape):
            size += element * prod(shape)
    return float(size) if size > 0 else None
