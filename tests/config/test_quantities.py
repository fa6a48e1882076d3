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


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0.4B", "must be at least 1 byte"),
        (-7, "must be at least 1 byte"),
        ("1048577TiB", "'1048577TiB' is more than an exbibyte"),
        (2**60 + 1, "is more than an exbibyte"),
        ("9" * 400, r"memory.limit='9{38}… is more than an exbibyte"),
        ("9" * 400 + "GiB", "is more than an exbibyte"),
        (10**400, "is more than an exbibyte"),
        ("\u0666\u0660GiB", "is not an amount"),
    ],
)
def test_amounts_that_no_device_has(value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_bytes(value, "memory.limit")


def test_the_largest_amount_is_exact() -> None:
    assert parse_bytes("1048576TiB", "memory.limit") == parse_bytes(2**60, "memory.limit") == 2**60


def test_a_limit_is_an_amount_or_a_share() -> None:
    assert MemoryLimit.parse("60GiB").resolve(None) == 60 * 2**30
    assert MemoryLimit.parse(0.5).resolve(1000) == 500
    assert MemoryLimit.parse("0.5").resolve(1000) == 500
    assert MemoryLimit.parse(1).resolve(1000) == 1000


@pytest.mark.parametrize(
    "value",
    [
        "60 GiBB",
        1.5,
        0,
        -0.2,
        True,
        None,
        "nan",
        [1],
        "0.9_2",
        "\u0660.\u0669",
        10**400,
        "9" * 400,
        "1e999",
    ],
)
def test_other_limits_are_refused(value: object) -> None:
    with pytest.raises(UserError, match=r"memory\.limit"):
        MemoryLimit.parse(value)


def test_a_share_of_less_than_a_byte_is_refused() -> None:
    assert MemoryLimit.parse("1e-9").resolve(2**30) == 1
    with pytest.raises(UserError, match=r"memory\.limit=1e-10 of a device.* less than 1 byte"):
        MemoryLimit.parse(1e-10).resolve(2**30)


def test_a_share_needs_the_devices_memory() -> None:
    with pytest.raises(UserError, match=r"cluster\.device_memory"):
        MemoryLimit.parse(0.9).resolve(None)


def test_format() -> None:
    assert format_bytes(512) == "512 B"
    assert format_bytes(1.5 * 2**30) == "1.5 GiB"
