"""What held the memory at the peak."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from autotune.analyze.profile import MemoryHolder

BEFORE = "allocated before profiling began"
_MOST = 200


class Allocation(NamedTuple):
    """Bytes that an operator allocated; times in nanoseconds.

    begin None: before the profile; end None: not released in it.
    """

    by: str
    size: float
    begin: int | None
    end: int | None


def holders_at(
    moment: int, allocated: float | None, allocations: Iterable[Allocation], origin: int
) -> tuple[MemoryHolder, ...]:
    """The allocations that were live at the moment, largest first.

    allocated: all bytes of the allocator then; what the profile saw no allocation of was there
    before it (parameters, optimizer state) and is one holder.
    """
    live = [a for a in allocations if _is_live(a, moment)]
    live.sort(key=lambda allocation: (-allocation.size, allocation.begin or 0))
    holders = [_holder(allocation, origin) for allocation in live[:_MOST]]
    rest = live[_MOST:]
    if rest:
        name = f"{len(rest)} smaller allocations"
        holders.append(MemoryHolder(name, sum(allocation.size for allocation in rest)))
    unseen = (allocated or 0.0) - sum(allocation.size for allocation in live)
    # Allocators count in blocks of 512 bytes: less than that is rounding.
    if live and unseen >= 512:
        holders.append(MemoryHolder(BEFORE, unseen))
    return tuple(sorted(holders, key=lambda holder: -holder.size_bytes))


def _is_live(allocation: Allocation, moment: int) -> bool:
    begun = allocation.begin is None or allocation.begin <= moment
    if allocation.begin is None and allocation.end is None:
        return False
    return begun and (allocation.end is None or allocation.end > moment)


def _holder(allocation: Allocation, origin: int) -> MemoryHolder:
    return MemoryHolder(
        by=allocation.by,
        size_bytes=allocation.size,
        allocated_at_us=_us(allocation.begin, origin),
        released_at_us=_us(allocation.end, origin),
    )


def _us(moment: int | None, origin: int) -> float | None:
    return None if moment is None else (moment - origin) / 1000
