"""Printed times of steps against the moments at which their lines came."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autotune.measure.arrivals import contradiction


def told(gaps: Sequence[float], printed_s: float, stride: int = 1) -> str | None:
    """Steps whose lines come after these gaps, each said to have taken `printed_s`."""
    at, arrivals = 100.0, {stride: 100.0}
    for number, gap in enumerate(gaps, start=2):
        at += gap
        arrivals[number * stride] = at
    return contradiction(arrivals, dict.fromkeys(arrivals, printed_s))


@pytest.mark.parametrize("printed_s", [0.001, 8e-308, 1e-7, 0.016])
def test_steps_that_come_far_more_slowly_than_they_say(printed_s: float) -> None:
    wrong = told([0.05] * 15, printed_s)
    assert wrong is not None
    assert f"prints {printed_s * 1e3:.3g} ms" in wrong
    assert "50 ms apart" in wrong


@pytest.mark.parametrize("printed_s", [0.02, 0.05, 0.06, 5.0])
def test_steps_that_come_about_as_they_say(printed_s: float) -> None:
    assert told([0.05] * 15, printed_s) is None


def test_an_evaluation_or_a_checkpoint_between_steps_does_no_harm() -> None:
    assert told(([0.05] * 4 + [30.0]) * 5, 0.05) is None


@pytest.mark.parametrize("gaps", [[0.0] * 99 + [5.0], ([0.0] * 9 + [0.5]) * 10, [0.0, 0.1] * 30])
def test_lines_that_come_in_bursts_contradict_nothing(gaps: list[float]) -> None:
    """As a program's buffer, or a supervisor that has much to do, hands them on."""
    assert told(gaps, 0.05) is None


def test_a_line_every_ten_steps_tells_of_ten() -> None:
    assert told([0.5] * 10, 0.05, stride=10) is None
    assert told([5.0] * 10, 0.05, stride=10) is not None


def test_a_few_milliseconds_are_the_machines() -> None:
    """A step of half a millisecond, and a loop that prints and flushes."""
    assert told([0.006] * 100, 0.0005) is None


def test_too_few_steps_tell_nothing() -> None:
    assert told([0.05] * 4, 0.001) is None
    assert contradiction({}, {}) is None
    assert contradiction({n: float(n) for n in range(20)}, {}) is None


def test_numbers_of_steps_beyond_what_a_float_holds() -> None:
    steps = [1, 10**400, 10**401, 10**402, 10**403, 10**404, 10**405]
    assert (
        contradiction({s: float(n) for n, s in enumerate(steps)}, dict.fromkeys(steps, 1.0)) is None
    )
