"""Two beliefs as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from autotune.search.guided.belief import Belief
from autotune.search.guided.combined import CombinedBelief, combined
from autotune.search.guided.geometry import Codes, Floats

ROWS = np.arange(8, dtype=np.int16)[:, None]
TRUE = np.exp(0.3 * np.arange(8.0))


@dataclass(frozen=True)
class Off:
    """Says the truth, and a constant amount more."""

    by: float

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        return np.log(TRUE[rows[:, 0]]) + self.by

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        return self.log_seconds(seen, peaks, rows)


@dataclass(frozen=True)
class Silent:
    """Has no answer."""

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        return None

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        return None


@dataclass(frozen=True)
class Parrot:
    """Repeats what it was told, and knows nothing else."""

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        told = {row.tobytes(): value for row, value in zip(seen, np.log(seconds), strict=True)}
        return np.array([told.get(row.tobytes(), 5.0) for row in rows])

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        return self.log_seconds(seen, peaks, rows)


def share_of_first(first: Belief, second: Belief, runs: int) -> float:
    """From what is said of a row of which the first says 0 more than the truth."""
    both = CombinedBelief(first, second)
    said = both.log_bytes(ROWS[:runs], TRUE[:runs], ROWS[7:])
    one = first.log_bytes(ROWS[:runs], TRUE[:runs], ROWS[7:])
    other = second.log_bytes(ROWS[:runs], TRUE[:runs], ROWS[7:])
    assert said is not None
    assert one is not None
    assert other is not None
    return float(((said - other) / (one - other))[0])


def test_before_any_run_the_first_counts_more() -> None:
    """Inverse to the squares of the errors that are expected of them, 0.1 and 0.15."""
    assert share_of_first(Off(0.0), Off(1.0), 0) == pytest.approx(0.0225 / 0.0325)
    assert share_of_first(Off(0.0), Off(1.0), 1) == pytest.approx(0.0225 / 0.0325)


@pytest.mark.parametrize("runs", [2, 5])
def test_the_one_that_errs_less_counts_more(runs: int) -> None:
    """Bates and Granger's weights, worked out by hand with three runs' worth of prior."""
    right = 3 * 0.01 / (3 + runs)
    wrong = (3 * 0.0225 + runs * 0.4**2) / (3 + runs)
    assert share_of_first(Off(0.0), Off(0.4), runs) == pytest.approx(wrong / (right + wrong))
    wrong = (3 * 0.01 + runs * 0.4**2) / (3 + runs)
    right = 3 * 0.0225 / (3 + runs)
    assert share_of_first(Off(0.4), Off(0.0), runs) == pytest.approx(right / (right + wrong))


def test_repeating_what_was_told_earns_nothing() -> None:
    assert share_of_first(Parrot(), Off(0.1), 6) < 0.01
    assert share_of_first(Off(0.1), Parrot(), 6) > 0.99


def test_times_are_weighed_too() -> None:
    both = CombinedBelief(Off(1.0), Off(0.0))
    said = both.log_seconds(ROWS[:6], TRUE[:6], ROWS[6:])
    assert said is not None
    assert np.abs(said - np.log(TRUE[6:])).max() < 0.2


def test_where_one_is_silent_the_other_counts() -> None:
    expected = np.log(TRUE[6:]) + 0.5
    for both in (CombinedBelief(Silent(), Off(0.5)), CombinedBelief(Off(0.5), Silent())):
        for said in (
            both.log_seconds(ROWS[:4], TRUE[:4], ROWS[6:]),
            both.log_bytes(ROWS[:4], TRUE[:4], ROWS[6:]),
        ):
            assert said is not None
            np.testing.assert_allclose(said, expected)
    assert CombinedBelief(Silent(), Silent()).log_seconds(ROWS[:4], TRUE[:4], ROWS[6:]) is None


def test_what_was_asked_before_changes_nothing() -> None:
    fresh, warm = (CombinedBelief(Off(0.2), Off(0.1)) for _ in range(2))
    for runs in range(8):
        warm.log_bytes(ROWS[:runs], TRUE[:runs], ROWS)
        warm.log_seconds(ROWS[:runs], TRUE[:runs], ROWS)
    for ask in ("log_seconds", "log_bytes"):
        one = getattr(fresh, ask)(ROWS[:5], TRUE[:5], ROWS)
        assert one.tolist() == getattr(warm, ask)(ROWS[:5], TRUE[:5], ROWS).tolist()


def test_one_alone_stays_alone() -> None:
    first, second = Off(0.1), Off(0.2)
    assert combined(None, None) is None
    assert combined(first, None) is first
    assert combined(None, second) is second
    assert isinstance(combined(first, second), CombinedBelief)
