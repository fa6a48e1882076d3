"""Numbers, times and sizes as logs write them. None stands for what is none of them."""

from __future__ import annotations

import math
import re

NUMBER = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|\.\d+(?:[eE][-+]?\d+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:inity)?)"
)
"""Source of a regular expression for one number, `1,234.5`, `1.3e+01`, `nan` or `-inf`."""

SCALED = rf"{NUMBER}[kKMGBT]?"
"""The same for a number that may have a decimal scale, as in `11.5K`."""

_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_SCALED = re.compile(rf"({NUMBER})([kKMGBT]?)")

_PARTS_OF_A_SECOND = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1000),
    **dict.fromkeys(("us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"), 1_000_000),
}
# `s/it` and the like: seconds all the same.
_DURATION = re.compile(
    rf"({NUMBER})\s*([a-z\N{{MICRO SIGN}}\N{{GREEK SMALL LETTER MU}}]*)(?:/\w+)?"
)
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)")

# Programs on PyTorch divide by powers of 1024 and write MB and GB for the quotients.
_SIZES = {"": 1, **{scale: 1024**n for n, scale in enumerate("KMGT", start=1)}}
_SIZE = re.compile(rf"({NUMBER})\s*(?:([KMGT]?)i?B|bytes?)")


def number(text: str) -> float | None:
    """A number, as in `1,234`, `11.5K` (11500), `1.3e+01`, `nan`."""
    match = _SCALED.fullmatch(text.strip())
    return _float(match[1]) * _SCALES[match[2]] if match else None


def count(text: str) -> int | None:
    """A whole number of at least 0, as in `8,629` or `1.6M`."""
    value = number(text)
    if value is None or not math.isfinite(value) or value < 0:
        return None
    whole = round(value)
    return whole if math.isclose(whole, value, rel_tol=1e-12) else None


def seconds(text: str, parts: int | None = None) -> float | None:
    """A time in seconds, as in `561.94ms`, `1.2 s/it`, `00:01:02`.

    parts: parts of a second that a number without a unit counts, such as 1000; without it
    there must be a unit.
    """
    if clock := _CLOCK.fullmatch(text.strip()):
        return int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    match = _DURATION.fullmatch(text.strip())
    if match and match[2] in _PARTS_OF_A_SECOND:
        return _float(match[1]) / _PARTS_OF_A_SECOND[match[2]]
    value = number(text)
    return None if value is None or parts is None else value / parts


def size_bytes(text: str, unit: int | None = None) -> int | None:
    """A size in bytes, as in `2.52GB`, `176.47GiB`; both are powers of 1024.

    unit: bytes that a number without a unit counts in; without it there must be a unit.
    """
    match = _SIZE.fullmatch(text.strip())
    if match:
        value: float | None = _float(match[1]) * _SIZES[match[2] or ""]
    else:
        value = number(text)
        value = None if value is None or unit is None else value * unit
    return round(value) if value is not None and 0 <= value < math.inf else None


def _float(text: str) -> float:
    return float(text.replace(",", ""))
