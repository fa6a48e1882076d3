"""Tensor memory of a CPU rank: making the kernel's count follow it, and capping it.

Linux counts private writable memory as VmData and refuses to let it grow past
RLIMIT_DATA; PyTorch's allocator then raises `DefaultCPUAllocator: can't allocate
memory` at that very allocation. Files mapped as shared, such as the spill of
offloaded activations, are not in VmData.
"""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

# glibc's <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

# Blocks from here on get pages of their own, which go back to the system when freed, so
# that VmData falls with the tensors. Smaller ones come from the heap, where touching fresh
# pages again and again would cost up to half of a small micro-batch's time.
_OWN_PAGES_FROM_BYTES = 1 << 20
# Free heap at the top that is kept instead of being returned.
_KEPT_HEAP_BYTES = 4 << 20
# Allowed beyond the tensors: buffers of the math library, heap that small tensors leave in
# holes, and the memory meter's events. 12 to 41 MiB were needed in the runs measured, most
# with offload; holes grow with the tensors.
_SLACK_BYTES = 64 << 20
_SLACK_SHARE = 0.25


def set_allocator() -> None:
    """Side effect: sets this process's malloc so that VmData follows large tensors."""
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_FROM_BYTES)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_HEAP_BYTES)
    libc.mallopt(_M_ARENA_MAX, 1)


def private_bytes() -> int:
    """The process's private writable memory (VmData of proc(5)), in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmData line; a memory cap needs Linux")


def cap_tensors(limit_bytes: int, live_bytes: int, known_peak: int | None = None) -> None:
    """Lets tensors of `limit_bytes` exist at once, `live_bytes` of which exist now.

    Whatever else the process holds now (interpreter, libraries, threads) is not charged,
    and 64 MiB and a quarter of the limit are allowed on top, so that no run fails that keeps
    to the limit. A run whose `known_peak`, in bytes, is over the limit gets nothing on top,
    so that it fails where it exceeds it.
    Only the soft limit is set, so that `uncap` can lift it.
    """
    ctypes.CDLL(None).malloc_trim(0)
    exceeds = known_peak is not None and known_peak > limit_bytes
    slack = 0 if exceeds else _SLACK_BYTES + int(_SLACK_SHARE * limit_bytes)
    # Nothing may grow any more where the tensors that live now are over the limit already.
    limit = private_bytes() + max(limit_bytes - live_bytes + slack, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def uncap() -> None:
    """Sets the soft limit back to the hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
