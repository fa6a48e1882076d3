"""The numbers in an out-of-memory message, and who held the device's memory by them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_AMOUNT = r"([0-9]+(?:\.[0-9]+)?) ?(bytes|KiB|MiB|GiB)"

# Three generations of PyTorch's text, torch_npu's and that of its workspace allocator:
#   Tried to allocate A (GPU 0; B total capacity; C already allocated; D free; E cached)
#   Tried to allocate A (NPU 0; B total capacity; C already allocated; ... D free; E reserved ...)
#   Tried to allocate A. GPU 0 has a total capacity of B of which D is free. Process 1 has F
#   memory in use. Including non-PyTorch memory, this process has G memory in use. ...
_PATTERNS = {
    "tried": rf"[Tt]ried to allocate {_AMOUNT}",
    "capacity": rf"{_AMOUNT} total capacity|total capac\w+ of {_AMOUNT}",
    "allocated": rf"{_AMOUNT} (?:already allocated|is allocated by PyTorch)",
    "free": rf"{_AMOUNT} (?:is )?free",
    "reserved": rf"{_AMOUNT} reserved in total",
    "idle": rf"{_AMOUNT} (?:cached\)|is reserved by PyTorch but unallocated)",
    "in_use": rf"this process has {_AMOUNT} memory in use",
    "allowed": rf"{_AMOUNT} allowed;",
}

# What the trial holds beside PyTorch's allocator: the runtime's context, buffers of collectives,
# workspaces. Less than this, nobody else need be there.
_LEAST_OTHERS_BYTES = 1 << 30
_LEAST_OTHERS_SHARE = 0.02
# Where the message does not say what the whole process holds, what is outside the allocator may
# be the trial's own up to this share.
_OUTSIDE_SHARE = 0.25
# An allocation this near to the whole device does not fit, whoever else is there.
_USABLE_SHARE = 0.95


@dataclass(frozen=True)
class OomNumbers:
    """Bytes in one message of PyTorch's or torch_npu's allocator, None where it has none.

    tried: that could not be had. capacity: of the device. allocated: in the program's tensors.
    free: on the device, as its driver says. reserved: by the allocator, allocated or not.
    in_use: by the whole process, as the driver says. allowed: a limit that the process set
    itself. Raises ValueError for a negative number.
    """

    tried: int | None = None
    capacity: int | None = None
    allocated: int | None = None
    free: int | None = None
    reserved: int | None = None
    in_use: int | None = None
    allowed: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value < 0:
                raise ValueError(f"{each.name}={value}: a number of bytes is at least 0")

    @property
    def own(self) -> int | None:
        """What the trial is known to have held."""
        return self.in_use if self.in_use is not None else self.reserved

    @property
    def others(self) -> int | None:
        """What is neither free nor known to be the trial's."""
        if self.capacity is None or self.free is None or self.own is None:
            return None
        return max(0, self.capacity - self.free - self.own)

    @property
    def is_held_by_others(self) -> bool:
        """Whether the trial would have had its memory but for what others held."""
        others = self.others
        if others is None or self.capacity is None or self.free is None or self._is_capped:
            return False
        if (self.own or 0) + (self.tried or 0) > _USABLE_SHARE * self.capacity:
            return False
        if self.in_use is None:
            return others > _OUTSIDE_SHARE * self.capacity
        least = max(_LEAST_OTHERS_BYTES, _LEAST_OTHERS_SHARE * self.capacity)
        return others >= least and (self.tried or 0) <= self.free + others

    @property
    def _is_capped(self) -> bool:
        """The process has reached the limit that it set itself."""
        if self.allowed is None or self.reserved is None:
            return False
        return self.reserved + (self.tried or 0) > self.allowed


def parse_oom_numbers(text: str) -> OomNumbers | None:
    """The numbers in a message, None where it is none that has any."""
    found = {name: _bytes(pattern, text) for name, pattern in _PATTERNS.items()}
    if found["tried"] is None and found["capacity"] is None:
        return None
    reserved = found["reserved"]
    if reserved is None and found["allocated"] is not None and found["idle"] is not None:
        reserved = found["allocated"] + found["idle"]
    in_use, capacity = found["in_use"], found["capacity"]
    if in_use is not None and capacity is not None and in_use > capacity:
        # Where the driver does not tell (WSL), PyTorch prints 17179869184.00 GiB, which is 2^64.
        in_use = None
    return OomNumbers(
        tried=found["tried"],
        capacity=capacity,
        allocated=found["allocated"],
        free=found["free"],
        reserved=reserved,
        in_use=in_use,
        allowed=found["allowed"],
    )


def _bytes(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    if match is None:
        return None
    amount, unit = [group for group in match.groups() if group is not None]
    return round(float(amount) * _UNITS[unit])
