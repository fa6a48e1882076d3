"""Seconds since the epoch as a person reads them."""

from __future__ import annotations

import math

import pytest

from autotune.measure.moments import is_moment, local_text, utc_text


def test_a_moment_is_written_as_a_date() -> None:
    # date -u -d @1796058768
    assert utc_text(1796058768.9) == "2026-11-30 17:12:48"
    assert utc_text(0.0) == "1970-01-01 00:00:00"
    assert len(local_text(1796058768.9, "%H:%M")) == 5


@pytest.mark.parametrize(
    "at", [1e300, -1e300, -1e11, -6.3e10, 1e12, 2.6e11, math.nan, math.inf, -math.inf]
)
def test_a_number_that_no_calendar_holds_is_no_moment(at: float) -> None:
    assert not is_moment(at)
    assert utc_text(at) == local_text(at) == "unknown"


def test_the_first_and_the_last_moments_can_be_written_in_any_time_zone() -> None:
    assert utc_text(-62_000_000_000.0).startswith("0005-")
    assert local_text(-62_000_000_000.0) != "unknown"
    assert utc_text(-1e9) == "1938-04-24 22:13:20"  # a clock that is wrong, and no odd line
    assert utc_text(253_370_764_799.0) == "9998-12-31 23:59:59"
    assert local_text(253_370_764_799.0) != "unknown"
