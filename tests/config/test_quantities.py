from __future__ import annotations

import pytest

from autotune.config.quantities import MemoryLimit, format_bytes, parse_bytes
from autotune.errors import UserError


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("60GiB", 60 * 2**30),
        ("61.5 GiB", 61.5 * 2**30),
        ("1kB", 1000),
        ("64gb", 64e9),
        ("128MiB", 2**27),
        ("7", 7),
        (7, 7),
        (".5KiB", 512),
    ],
)
def test_amounts(text: object, count: float) -> None:
    assert parse_bytes(text, "memory.limit") == count


@pytest.mark.parametrize("text", ["60 GiBB", "GiB", "-1GiB", "0", "1e3", "", None, True, "1,5GiB"])
def test_wrong_amounts_name_the_key_and_what_is_allowed(text: object) -> None:
    with pytest.raises(UserError, match=r"memory\.limit=.*such as 60GiB"):
        parse_bytes(text, "memory.limit")


def test_a_limit_is_an_amount_or_a_share() -> None:
    assert MemoryLimit.parse("60GiB").resolve(None) == 60 * 2**30
    assert MemoryLimit.parse(0.5).resolve(1000) == 500
    assert MemoryLimit.parse("0.5").resolve(1000) == 500
    assert MemoryLimit.parse(1).resolve(1000) == 1000


@pytest.mark.parametrize("value", ["60 GiBB", 1.5, 0, -0.2, True, None, "nan", [1]])
def test_other_limits_are_refused(value: object) -> None:
    with pytest.raises(UserError, match=r"memory\.limit"):
        MemoryLimit.parse(value)


def test_a_share_needs_the_devices_memory() -> None:
    with pytest.raises(UserError, match=r"cluster\.device_memory"):
        MemoryLimit.parse(0.9).resolve(None)


def test_format() -> None:
    assert format_bytes(512) == "512 B"
    assert format_bytes(1.5 * 2**30) == "1.5 GiB"
