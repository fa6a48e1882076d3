"""How likely points are to run, from peaks and from what did not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import History
from autotune.search.guided.memory_model import MemoryModel, fit_memory, model_memory
from autotune.search.guided.usable import Usable, model_usable
from autotune.search.guided.vocabulary import memory_slopes
from tests.search.guided.planted import kinds, ladder, space_of

SPACE = space_of({"micro_batch_size": ladder(5), "tp": ladder(4), "kind": kinds(3), "x": ladder(4)})
GEOMETRY = Geometry.of(SPACE.parameters)
SLOPES = memory_slopes(SPACE.parameters)
NO_SLOPES = np.zeros(4)
MICRO_BATCH, TP, KIND, X = SPACE.codes.T

LIMIT = 50.0


def peaks_of(rows: Codes) -> Floats:
    """Doubles with the micro-batch, falls with tensor parallelism, and one kind needs more."""
    micro_batch, tp, kind, _ = rows.T
    return np.asarray(8.0 + 12.0 * 2.0**micro_batch / 2.0 ** (0.8 * tp) * np.where(kind == 2, 2, 1))


FITS = peaks_of(SPACE.codes) <= LIMIT


def history_of(rows: Codes, has_peaks: bool, failed: np.ndarray | None = None) -> History:
    """Runs of rows, those that do not fit without a time; some failed for another reason."""
    fits = peaks_of(rows) <= LIMIT
    broken = np.zeros(len(rows), dtype=bool) if failed is None else failed
    return History(
        rows=rows,
        seconds=np.where(fits & ~broken, 1.0, np.nan),
        peaks=np.where(fits & ~broken, peaks_of(rows), np.nan) if has_peaks else fits * np.nan,
        usable=fits & ~broken,
        out_of_memory=~fits & ~broken,
        rough=np.zeros(len(rows), dtype=bool),
        pending=rows[:0],
    )


def some(count: int, seed: int = 0) -> Codes:
    return SPACE.codes[np.random.default_rng(seed).permutation(len(SPACE.codes))[:count]]


def model(history: History, knowledge: Knowledge, slopes: Floats = NO_SLOPES) -> MemoryModel:
    fitted = fit_memory(GEOMETRY, slopes, history, knowledge)
    return model_memory(fitted, slopes, history, knowledge)


def usable(history: History, knowledge: Knowledge, slopes: Floats = NO_SLOPES) -> Usable:
    fitted = fit_memory(GEOMETRY, slopes, history, knowledge)
    return model_usable(fitted, slopes, history, knowledge)


def test_before_any_run_names_say_what_is_likelier_to_fit() -> None:
    fits = model(history_of(SPACE.codes[:0], False), Knowledge(), SLOPES).fits(SPACE.codes)
    alike = fits[(KIND == 0) & (X == 0)].reshape(5, 4)  # micro-batches by parallelism
    assert (np.diff(alike, axis=0) < 0).all()
    assert (np.diff(alike, axis=1) > 0).all()


def test_before_any_run_without_names_all_is_alike() -> None:
    fits = model(history_of(SPACE.codes[:0], False), Knowledge()).fits(SPACE.codes)
    assert fits == pytest.approx(np.full(len(fits), 0.5))


def test_once_a_peak_is_known_memory_goes_with_the_numbers() -> None:
    """Before that no parameter's direction counts more than another's."""
    ends = SPACE.codes[(KIND == 0) & (X == 0) & (MICRO_BATCH % 4 == 0) & (TP % 3 == 0)]
    none = model(history_of(SPACE.codes[:0], False), Knowledge(), SLOPES)
    alike = none.headroom(ends)[0].reshape(2, 2)
    assert alike[0, 0] == pytest.approx(alike[1, 1])  # 16 times the batch on 8 times the ranks
    # A peak that is just what is expected of tp=2 beside the middle of 1 to 8.
    middle = SPACE.codes[(MICRO_BATCH == 2) & (TP == 1) & (KIND == 0) & (X == 0)]
    one = replace(history_of(middle, True), peaks=np.array([LIMIT * 2**0.5]), seconds=np.ones(1))
    ran = replace(one, usable=np.zeros(1, dtype=bool), out_of_memory=np.ones(1, dtype=bool))
    known = model(ran, Knowledge(LIMIT), SLOPES).headroom(ends)[0].reshape(2, 2)
    assert known[0] - known[1] == pytest.approx(np.log([16, 16]), abs=0.01)
    assert known[:, 1] - known[:, 0] == pytest.approx(np.log([8, 8]), abs=0.01)


@pytest.mark.parametrize("slopes", [SLOPES, NO_SLOPES], ids=["names", "blind"])
@pytest.mark.parametrize(
    ("has_peaks", "limit"), [(True, LIMIT), (False, None)], ids=["peaks", "sides"]
)
def test_what_fits_is_learned(slopes: Floats, has_peaks: bool, limit: float | None) -> None:
    """From 40 of 240 points; with peaks far better than by sides alone."""
    fits = model(history_of(some(40), has_peaks), Knowledge(limit), slopes).fits(SPACE.codes)
    wrong = ((fits > 0.5) != FITS).mean()
    assert wrong < (0.05 if has_peaks else 0.15)
    assert min(FITS.mean(), 1 - FITS.mean()) > 0.25  # guessing is wrong that often


def test_headroom_is_that_of_the_peaks() -> None:
    history, knowledge = history_of(some(60), True), Knowledge(LIMIT)
    mean, deviation = model(history, knowledge).headroom(SPACE.codes)
    truth = np.log(LIMIT) - np.log(peaks_of(SPACE.codes))
    assert np.abs(mean - truth)[FITS].mean() < 0.05
    assert (np.abs(mean - truth)[FITS] < 4 * deviation[FITS] + 0.05).mean() > 0.9


def test_a_peak_over_the_limit_tells_how_much_is_too_much() -> None:
    """More than that it did not fit: other points are told from how far it was over."""
    rows = some(30)
    history = history_of(rows, True)
    measured = History(
        rows=rows,
        seconds=np.ones(30),
        peaks=peaks_of(rows),
        usable=history.usable,
        out_of_memory=history.out_of_memory,
        rough=history.rough,
        pending=history.pending,
    )
    truth = np.log(LIMIT) - np.log(peaks_of(SPACE.codes))
    told, untold = (
        model(h, Knowledge(LIMIT)).headroom(SPACE.codes)[0] for h in (measured, history)
    )
    assert np.abs(told - truth)[~FITS].mean() < 0.5 * np.abs(untold - truth)[~FITS].mean()


def test_the_peak_at_which_a_run_ran_out_of_memory_is_not_taken_for_its_need() -> None:
    """It died before it reached its peak, with what looks like little."""
    rows = some(30)
    plain = history_of(rows, True)
    dying = np.where(plain.out_of_memory, 5.0, plain.peaks)
    died = History(
        rows, plain.seconds, dying, plain.usable, plain.out_of_memory, plain.rough, plain.pending
    )
    expected = model(plain, Knowledge(LIMIT)).fits(SPACE.codes)
    assert model(died, Knowledge(LIMIT)).fits(SPACE.codes) == pytest.approx(expected)


def test_points_like_failed_ones_are_avoided() -> None:
    """A kind that always fails, for another reason than memory."""
    rows = some(40)
    broken = rows[:, 2] == 1
    with_peaks = usable(history_of(rows, True, broken), Knowledge(LIMIT))
    without = usable(history_of(rows, False, broken), Knowledge())
    for found in (with_peaks, without):
        runs = found.runs(SPACE.codes)
        assert runs[FITS & (KIND == 1)].mean() < 0.5 * runs[FITS & (KIND != 1)].mean()


def test_where_everything_has_run_for_long_all_is_expected_to_run() -> None:
    small = SPACE.codes[FITS][:60]
    runs = usable(history_of(small, False), Knowledge()).runs(SPACE.codes)
    assert runs == pytest.approx(np.ones(len(runs)))


class _Believes:
    """A belief that knows the peaks, but for a factor, or has no answer."""

    def __init__(self, factor: float | None) -> None:
        self.factor = factor

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        return None

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        return None if self.factor is None else np.log(self.factor * peaks_of(rows))


def test_what_is_believed_of_memory_is_expected_before_any_run() -> None:
    nothing = history_of(SPACE.codes[:0], False)
    fits = model(nothing, Knowledge(LIMIT, _Believes(1.0))).fits(SPACE.codes)
    assert ((fits > 0.5) == FITS).all()


def test_a_belief_that_is_off_by_a_factor_is_corrected() -> None:
    history = history_of(some(20), True)
    fits = model(history, Knowledge(LIMIT, _Believes(1.5))).fits(SPACE.codes)
    assert ((fits > 0.5) != FITS).mean() < 0.03


def test_a_belief_without_an_answer_is_none() -> None:
    history = history_of(some(12), True)
    expected = model(history, Knowledge(LIMIT), SLOPES).fits(SPACE.codes)
    silent = Knowledge(LIMIT, _Believes(None))
    assert model(history, silent, SLOPES).fits(SPACE.codes) == pytest.approx(expected)
