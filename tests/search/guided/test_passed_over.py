"""What a guided proposal stands in for: what would have been proposed but for the gate."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from autotune.search.encoding import Encoding
from autotune.space.point import Point
from tests.search.guided.planted import LAYOUTS, LAYOUTS_LIMIT, Sweep, guided, layout


class Refusing:
    """A gate, and its keeper, that refuses these points and asks for no check of itself."""

    check_is_due = False

    def __init__(self, *points: Point) -> None:
        self.rows = np.array([Encoding(LAYOUTS).row_of(point) for point in points])

    def gate(self, trials: Iterable[FrozenTrial]) -> Refusing:
        return self

    def refused(self, rows: NDArray[np.int16]) -> NDArray[np.bool_]:
        return (rows[:, None] == self.rows[None]).all(axis=2).any(axis=1)

    def some_admitted(self, rows: NDArray[np.int16], seed: int, most: int = 1) -> NDArray[np.int16]:
        return rows[~self.refused(rows)][:most]


def proposal(gate: Refusing | None, trials: int = 14) -> tuple[Point, Point | None]:
    """The next proposal of a sweep that nothing was refused to so far, and what it stands for."""
    sweep, sampler = Sweep(LAYOUTS, layout, LAYOUTS_LIMIT), guided(LAYOUTS, 5, LAYOUTS_LIMIT)
    sweep.run(sampler, trials)
    sampler.gatekeeper = gate
    return sweep.ask(sampler)[1], sampler.passed_over


def test_the_point_that_would_have_been_launched_is_named() -> None:
    wanted, passed_over = proposal(None)
    assert passed_over is None
    second, passed_over = proposal(Refusing(wanted))
    assert second != wanted
    assert passed_over == wanted
    third, passed_over = proposal(Refusing(wanted, second))
    assert third not in (wanted, second)
    assert passed_over == wanted


def test_what_would_not_have_been_launched_anyway_is_not_passed_over() -> None:
    """However fast it may be: the gate need not be asked about what is too unlikely to run."""
    wanted, _ = proposal(None)
    others = [point for point in LAYOUTS.points if point != wanted]
    assert proposal(Refusing(*others[::3])) == (wanted, None)
    assert proposal(Refusing(*others)) == (wanted, None)


@pytest.mark.parametrize("trials", [0, 14])
def test_where_everything_is_refused_any_point_is_proposed(trials: int) -> None:
    wanted, _ = proposal(None, trials)
    _, passed_over = proposal(Refusing(*LAYOUTS.points), trials)
    assert passed_over == (wanted if trials else None)  # before the first run all are alike
