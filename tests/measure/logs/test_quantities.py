from __future__ import annotations

import math

import pytest

from autotune.measure.logs.quantities import count, number, seconds, size_bytes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", 1234),
        ("1,234,567.5", 1234567.5),
        ("11.5K", 11500),
        ("2.5M", 2.5e6),
        ("85.8G", 85.8e9),
        ("1.3e+01", 13),
        ("1.252221E+01", 12.52221),
        ("-0.5", -0.5),
        (".5", 0.5),
        ("inf", math.inf),
        ("-inf", -math.inf),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["NAN", "nan", "NaN"])
def test_no_number_is_one_too(text: str) -> None:
    assert math.isnan(number(text) or 0)


@pytest.mark.parametrize(
    "text", ["", "K", "8,6", "1,23", "12,3456", "1.2.3", "1_000", "12…", "0x1f"]
)
def test_what_is_no_number(text: str) -> None:
    assert number(text) is None


def test_counts_are_whole() -> None:
    assert [count(text) for text in ("8,629", "1.6M", "1.0", "12.5", "-3", "nan", "inf")] == [
        8629, 1_600_000, 1, None, None, None, None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "parts", "value"),
    [
        ("561.94ms", None, 0.56194),
        ("1.2 s", None, 1.2),
        ("4.47s/it", None, 4.47),
        ("250 us", None, 0.00025),
        ("250\N{MICRO SIGN}s", None, 0.00025),
        ("3 seconds", None, 3),
        ("00:01:02", None, 62),
        ("1:02.5", None, 62.5),
        ("129028.8", 1000, 129.0288),
        ("11.5K", 1000, 11.5),
        ("41ms", 1, 0.041),
        ("41", None, None),
        ("41 parsecs", None, None),
        ("41 parsecs", 1, None),
        ("ms", None, None),
    ],
)
def test_times(text: str, parts: int | None, value: float | None) -> None:
    assert seconds(text, parts) == (None if value is None else pytest.approx(value, rel=1e-12))


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("176.47GiB", None, round(176.47 * 2**30)),
        ("2.52GB", None, round(2.52 * 2**30)),
        ("4 GB", None, 4 * 2**30),
        ("17482.0", 2**20, 17482 * 2**20),
        ("722.5703125 MB", None, round(722.5703125 * 2**20)),
        ("705630208", 1, 705630208),
        ("705630208 bytes", None, 705630208),
        ("3 B", None, 3),
        ("3", None, None),
        ("nan", 1, None),
        ("-1 GB", None, None),
        ("3 Gbit", None, None),
    ],
)
def test_sizes(text: str, unit: int | None, value: int | None) -> None:
    assert size_bytes(text, unit) == value
