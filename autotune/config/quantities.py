"""Amounts of memory as people write them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from autotune.errors import UserError

# IEC prefixes are powers of 1024, SI prefixes powers of 1000 (IEC 80000-13).
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{p}ib": 1024**n for n, p in enumerate("kmgt", start=1)},
    **{f"{p}b": 1000**n for n, p in enumerate("kmgt", start=1)},
}
# An exbibyte is more than any cluster has, and what floats and 64-bit integers still count well.
_LARGEST = 1 << 60
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*")
_LONGEST_SHOWN = 40
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_ALLOWED = "a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 60GiB"


def parse_bytes(value: object, key: str) -> int:
    """The number of bytes in `value`, such as `60GiB` or `1024`: at least 1, at most 2^60.

    `key` is the configuration key it came from, for the error. Raises UserError.
    """
    count: float
    if isinstance(value, int) and not isinstance(value, bool):
        count = value
    else:
        match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise UserError(f"{key}={_shown(value)} is not an amount of memory; give {_ALLOWED}")
        count = float(match[1]) * unit
    if count > _LARGEST:
        raise UserError(f"{key}={_shown(value)} is more than an exbibyte; give {_ALLOWED}")
    if round(count) <= 0:
        raise UserError(f"{key}={_shown(value)} must be at least 1 byte; give {_ALLOWED}")
    return round(count)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def format_bytes(count: float) -> str:
    """`count` bytes in the largest IEC unit that leaves at least 1, such as `1.5 GiB`."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


@dataclass(frozen=True)
class MemoryLimit:
    """The limit on peak memory per device: bytes, or a share of the device's memory."""

    bytes: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, value: object) -> MemoryLimit:
        """From `memory.limit`: `60GiB`, or a share such as `0.92`. Raises UserError."""
        number = _as_float(value)
        if number is not None and 0 < number <= 1:
            return cls(share=number)
        if isinstance(value, str) and number is None:
            return cls(bytes=parse_bytes(value, "memory.limit"))
        raise UserError(
            f"memory.limit={_shown(value)} is neither an amount nor a share of the device; "
            f"give {_ALLOWED}, or a share between 0 and 1, such as 0.92"
        )

    def resolve(self, device_memory: int | None) -> int:
        """The limit in bytes on a device that has `device_memory` bytes. Raises UserError."""
        if self.bytes is not None:
            return self.bytes
        assert self.share is not None
        if device_memory is None:
            raise UserError(
                f"memory.limit={self.share} is a share of the device, but the device's memory is "
                "not known; give cluster.device_memory=64GiB, or the limit itself: "
                "memory.limit=60GiB"
            )
        limit = int(self.share * device_memory)
        if limit < 1:
            raise UserError(
                f"memory.limit={self.share} of a device that has {device_memory} bytes is less "
                "than 1 byte; give a larger share, such as 0.92, or an amount, such as 60GiB"
            )
        return limit


def _as_float(value: object) -> float | None:
    if isinstance(value, str):
        # Python's `float` takes `1_0` and digits of other scripts too.
        return float(value) if _NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= _LARGEST else math.inf
