"""Nobody needs to look: a sweep goes on when its terminal, or what reads it, has gone."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Callable

import pytest

from .conftest import Program, ended, once


def speaks_into(descriptor: int) -> None:
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115


def loses_its_reader(program: Program) -> Callable[[], None]:
    """As behind `| tee log` or `| less` that ends."""

    def before() -> None:
        reading, writing = os.pipe()
        speaks_into(writing)
        os.close(writing)
        program.behave = once(2, lambda: os.close(reading))

    return before


def loses_its_terminal(program: Program) -> Callable[[], None]:
    """As after `disown`, or under nohup with the output left to the terminal."""

    def before() -> None:
        terminal, ours = pty.openpty()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        speaks_into(ours)
        os.close(ours)
        program.behave = once(2, lambda: os.close(terminal))

    return before


@pytest.mark.parametrize("loses", [loses_its_reader, loses_its_terminal])
def test_a_sweep_that_nobody_hears_any_more_goes_on(
    program: Program, loses: Callable[[Program], Callable[[], None]]
) -> None:
    assert ended(program.start("out", before=loses(program))) == 0
    assert len(program.trials) == 12


@pytest.mark.parametrize("loses", [loses_its_reader, loses_its_terminal])
def test_whatever_it_ends_with_no_result_is_lost(
    program: Program, loses: Callable[[Program], Callable[[], None]]
) -> None:
    ended(program.start("out", before=loses(program)))
    assert len(program.trials) >= 2
    assert program.run() == 0
    assert len(program.trials) == 12


def test_a_sweep_without_any_of_the_three_streams(program: Program) -> None:
    """As some schedulers start programs: what is opened next is not taken for the output."""

    def before() -> None:
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        sys.stdin = sys.stdout = sys.stderr = None

    assert ended(program.start("out", before=before)) == 0
    assert len(program.trials) == 12
    assert len(program.states) == 12


@pytest.mark.parametrize(
    "encoding",
    [
        "utf-8",
        "gb18030",
        "latin-1",
        "ascii",
    ],
)
def test_a_terminal_that_lacks_the_characters(program: Program, encoding: str) -> None:
    """As with PYTHONIOENCODING, or an old locale: the study's path is Chinese."""

    def before() -> None:
        stream = open(1, "w", encoding=encoding, buffering=1, closefd=False)  # noqa: SIM115
        sys.stdout = sys.stderr = stream

    assert ended(program.start("out", "search.max_trials=2", before=before)) == 0
