"""What this rank holds, in bytes, as the libraries that the program has loaded say it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict  # noqa: UP035 (Python 3.8 subscripts no other)

_KIB = 1024


def device_of() -> str:
    """`npu`, `cuda` or `cpu`: where the loaded torch runs."""
    for name in ("npu", "cuda"):
        if _backend(name) is not None:
            return name
    return "cpu"


def peaks() -> Dict[str, int]:  # noqa: UP006
    """Peaks of allocator and device, by the names of the rank records.

    On an accelerator: the allocator's own peaks, and what is in use on the device now, which
    holds the buffers of HCCL and CANN too. The pool is hardly given back, so that is near the
    peak; and how often the allocator had to try again. On cpu: the most that the process held,
    which is the peak of its device.
    """
    backend = _backend(device_of())
    if backend is None:
        return {"peak_device_bytes": _process_peak()}
    free, total = backend.mem_get_info()
    return {
        "peak_allocated_bytes": int(backend.max_memory_allocated()),
        "peak_reserved_bytes": int(backend.max_memory_reserved()),
        "peak_device_bytes": int(total - free),
        "alloc_retries": int(backend.memory_stats().get("num_alloc_retries", 0)),
    }


def _backend(name: str) -> Any:
    """`torch.npu` or `torch.cuda` where it is loaded and has a device."""
    backend = getattr(sys.modules.get("torch"), name, None)
    if backend is None or not hasattr(backend, "mem_get_info"):
        return None
    return backend if backend.is_available() else None


def _process_peak() -> int:
    """VmHWM of proc(5)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIB
    return 0
