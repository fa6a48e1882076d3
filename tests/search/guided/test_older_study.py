"""An older study as what is known beforehand: planted functions on two spaces."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.guided.belief import Belief, Knowledge
from autotune.search.guided.expectation import Expectation
from autotune.search.guided.geometry import Codes, Floats
from autotune.search.guided.older_study import OlderRun, OlderStudyBelief
from autotune.search.guided.sampler import GuidedSampler
from autotune.space.definition import Parameter
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from tests.search.guided.planted import Sweep, kinds, ladder, ok, space_of

Values = Mapping[str, Any]

OLD = {"tp": ladder(4), "micro": ladder(3), "kind": kinds(3), "gone": kinds(2)}
NEW = {"tp": ladder(4), "micro": ladder(3), "kind": kinds(4), "extra": kinds(3)}


def old_time(values: Values) -> float:
    """Seconds, with the least in the middle of tp; the kind that is best depends on it."""
    tp, micro = math.log2(values["tp"]), math.log2(values["micro"])
    kind = {"kind0": 0.0, "kind1": 0.25, "kind2": -0.1, "kind3": 0.15}[values["kind"]]
    both = -0.3 if values["kind"] == "kind1" and tp >= 2 else 0.0
    gone = 0.4 if values.get("gone") == "kind1" else 0.0
    return math.exp(0.15 * (tp - 1.7) ** 2 - 0.2 * micro + kind + both + gone)


def new_time(values: Values) -> float:
    """Three times as long, and one more parameter."""
    extra = {"kind0": 0.1, "kind1": 0.0, "kind2": 0.2}[values["extra"]]
    return 3 * math.exp(extra) * old_time(values)


def old_peak(values: Values) -> float:
    return 1e9 * (1 + values["micro"] / values["tp"])


def older_runs(
    time_of: Callable[[Values], float], peak_of: Callable[[Values], float] = old_peak
) -> list[OlderRun]:
    """40 of the 72 points of the old space."""
    points = space_of(OLD).points
    picked = np.random.default_rng(1).permutation(len(points))[:40]
    return [OlderRun(p, Status.OK, time_of(p), peak_of(p)) for p in (points[i] for i in picked)]


def belief_of(runs: Sequence[OlderRun], space: LegalSpace, **rest: Any) -> OlderStudyBelief:
    belief = OlderStudyBelief.of(runs, space.parameters, rest.get("is_same_scale", False))
    assert belief is not None
    return belief


@pytest.fixture(scope="module")
def space() -> LegalSpace:
    """144 points."""
    return space_of(NEW)


@pytest.fixture(scope="module")
def belief(space: LegalSpace) -> OlderStudyBelief:
    return belief_of(older_runs(old_time), space)


def rows_of(space: LegalSpace, points: Sequence[Values]) -> Codes:
    return np.array([Encoding(space).row_of(point) for point in points], dtype=np.int16)


def seconds_said(belief: Belief, space: LegalSpace, seen: Sequence[Point]) -> Floats:
    """Of all points of the space, after so many were measured."""
    seconds = np.array([new_time(point) for point in seen])
    rows = rows_of(space, seen).reshape(-1, len(space.parameters))
    said = belief.log_seconds(rows, seconds, space.codes)
    assert said is not None
    return said


# What an expectation makes of measured values.

SAYS = np.array([-1.0, 0.0, 1.0, 2.0])
ROWS = np.arange(4, dtype=np.int16)[:, None]


def expectation(level_spread: float = 2.0, misfit: float = 0.1) -> Expectation:
    def predict(rows: Codes) -> tuple[Floats, Floats]:
        return SAYS[rows[:, 0]], np.zeros(len(rows))

    return Expectation(predict, 0.0, level_spread, misfit)


def test_nothing_measured_leaves_what_was_expected() -> None:
    assert expectation().adjusted(ROWS[:0], np.zeros(0), ROWS).tolist() == SAYS.tolist()


def test_one_run_tells_the_level() -> None:
    """The mean of a normal prior and a measurement, by their precisions."""
    said = expectation(0.5, 0.5).adjusted(ROWS[1:2], np.array([3.0]), ROWS)
    np.testing.assert_allclose(said, SAYS + 1.5)
    said = expectation(2.0, 0.1).adjusted(ROWS[1:2], np.array([3.0]), ROWS)
    np.testing.assert_allclose(said, SAYS + 3.0 * 100 / (100 + 0.25))


def test_level_and_share_are_those_of_penalised_least_squares() -> None:
    """Solved with the prior as two more measurements."""
    measured, misfit, level_spread, share_spread = np.array([0.3, 0.7, 2.2]), 0.2, 2.0, 0.4
    lines = np.vstack(
        [
            np.column_stack([np.ones(3), SAYS[:3]]) / misfit,
            [[1 / level_spread, 0], [0, 1 / share_spread]],
        ]
    )
    values = np.concatenate([measured / misfit, [0.0, 1 / share_spread]])
    (level, share), *_ = np.linalg.lstsq(lines, values, rcond=None)
    said = expectation(level_spread, misfit).adjusted(ROWS[:3], measured, ROWS)
    np.testing.assert_allclose(said, level + share * SAYS)


def test_what_is_contradicted_is_dropped() -> None:
    said = expectation().adjusted(ROWS, 5.0 - SAYS, ROWS)
    assert np.ptp(said) == 0.0
    assert said[0] == pytest.approx(5.0 - SAYS.mean(), abs=0.01)


# What an older study tells.


def test_the_shape_is_the_old_one_at_the_new_level(
    space: LegalSpace, belief: OlderStudyBelief
) -> None:
    """What one parameter more does is not known, so it is off by that and little more."""
    truth = np.array([math.log(new_time(point)) for point in space.points])
    same = np.array([point["kind"] != "kind3" for point in space.points])
    few = seconds_said(belief, space, space.points[10:100:30])
    assert np.abs(few - truth)[same].max() < 0.35
    assert np.corrcoef(few[same], truth[same])[0, 1] > 0.95
    # Without any run it is the older study's level, three times as fast.
    none = seconds_said(belief, space, [])
    assert np.median((truth - none)[same]) == pytest.approx(math.log(3), abs=0.3)


def test_a_new_kind_is_like_the_mean_of_the_others(
    space: LegalSpace, belief: OlderStudyBelief
) -> None:
    said = seconds_said(belief, space, [])
    by_kind = {k: said[[p["kind"] == k for p in space.points]] for k in NEW["kind"]["choices"]}
    others = np.mean([by_kind[kind] for kind in ("kind0", "kind1", "kind2")], axis=0)
    assert np.abs(by_kind["kind3"] - others).max() < 0.15


def test_a_new_number_is_interpolated() -> None:
    """The older study had 1, 4 and 16 of a time that falls by a power law."""
    new = space_of({"degree": ladder(5), "kind": kinds(2)})
    runs = [
        OlderRun({"degree": d, "kind": k}, Status.OK, d**-0.5 * (1 + (k == "kind1")), d * 1e6)
        for d in (1, 4, 16)
        for k in ("kind0", "kind1")
    ]
    belief = belief_of(runs, new, is_same_scale=True)
    asked = rows_of(new, [{"degree": d, "kind": "kind0"} for d in (2, 8)])
    nothing = new.codes[:0]
    seconds = belief.log_seconds(nothing, np.zeros(0), asked)
    peaks = belief.log_bytes(nothing, np.zeros(0), asked)
    assert seconds is not None
    assert peaks is not None
    np.testing.assert_allclose(np.exp(seconds), [2**-0.5, 8**-0.5], rtol=0.2)
    np.testing.assert_allclose(np.exp(peaks), [2e6, 8e6], rtol=0.2)


def test_a_run_that_was_stopped_is_believed_less(space: LegalSpace) -> None:
    runs = older_runs(old_time)
    wrong = next(n for n, run in enumerate(runs) if run.values["gone"] == "kind0")
    values = {k: v for k, v in runs[wrong].values.items() if k != "gone"} | {"extra": "kind1"}
    asked, nothing = rows_of(space, [values]), space.codes[:0]
    said = {}
    for status in (Status.OK, Status.STOPPED):
        off = OlderRun(runs[wrong].values, status, old_time(runs[wrong].values) / 3, 1e9)
        belief = belief_of([*runs[:wrong], off, *runs[wrong + 1 :]], space)
        answer = belief.log_seconds(nothing, np.zeros(0), asked)
        assert answer is not None
        said[status] = float(answer[0])
    right = belief_of(runs, space).log_seconds(nothing, np.zeros(0), asked)
    assert right is not None
    assert abs(said[Status.STOPPED] - right[0]) < abs(said[Status.OK] - right[0])


def test_peaks_are_those_of_the_older_study_at_the_new_level(
    space: LegalSpace, belief: OlderStudyBelief
) -> None:
    """Half as large again: after three runs all others are known."""
    truth = np.array([math.log(1.5 * old_peak(point)) for point in space.points])
    seen = [7, 50, 100]
    said = belief.log_bytes(space.codes[seen], np.exp(truth[seen]), space.codes)
    assert said is not None
    assert np.abs(said - truth).max() < 0.15


def test_bytes_of_another_model_say_nothing_before_a_run(
    space: LegalSpace, belief: OlderStudyBelief
) -> None:
    nothing = space.codes[:0]
    assert belief.log_bytes(nothing, np.zeros(0), space.codes) is None
    same = belief_of(older_runs(old_time), space, is_same_scale=True)
    said = same.log_bytes(nothing, np.zeros(0), space.codes)
    assert said is not None
    truth = np.array([math.log(old_peak(point)) for point in space.points])
    assert np.abs(said - truth).max() < 0.15


def test_runs_that_ran_out_of_memory_have_the_largest_peaks() -> None:
    """Their peaks are not known; that of their neighbours alone would say less."""
    new = space_of({"micro": ladder(5), "kind": kinds(2)})
    runs = [
        OlderRun({"micro": m, "kind": k}, Status.OK, 1.0, 1e9 * (1 + 0.01 * m))
        for m in (1, 2, 4)
        for k in ("kind0", "kind1")
    ]
    lost = [OlderRun({"micro": 16, "kind": k}, Status.OOM, None, None) for k in ("kind0", "kind1")]
    asked = rows_of(new, [{"micro": 16, "kind": "kind0"}])
    said = [
        belief_of(known, new, is_same_scale=True).log_bytes(new.codes[:0], np.zeros(0), asked)
        for known in (runs, [*runs, *lost])
    ]
    assert said[0] is not None
    assert said[1] is not None
    assert said[1][0] > max(said[0][0], math.log(1.04e9))


def test_too_little_is_nothing(space: LegalSpace) -> None:
    runs, newer = older_runs(old_time), space.parameters
    assert OlderStudyBelief.of(runs[:5], newer, True) is None
    assert OlderStudyBelief.of([], newer, True) is None
    unlike = [Parameter("other", (1, 2))]
    assert OlderStudyBelief.of(runs, unlike, True) is None
    refused = [OlderRun(r.values, Status.SKIPPED, r.seconds, r.peak_bytes) for r in runs]
    assert OlderStudyBelief.of(refused, newer, True) is None
    broken = [OlderRun(r.values, Status.FAILED, None, None) for r in runs]
    assert OlderStudyBelief.of(broken, newer, True) is None
    without = [OlderRun(r.values, r.status, r.seconds, None) for r in runs]
    timed = belief_of(without, space, is_same_scale=True)
    assert timed.log_bytes(space.codes[:3], np.full(3, 1e9), space.codes) is None


def test_the_same_runs_say_the_same(space: LegalSpace, belief: OlderStudyBelief) -> None:
    """A belief that was asked many things before, and one that was just made."""
    seen = space.points[10:100:30]
    for row in space.codes[::5]:
        belief.log_seconds(space.codes[:1], np.array([2.0]), row[None])
    again = belief_of(older_runs(old_time), space)
    warm, cold = (seconds_said(one, space, seen) for one in (belief, again))
    assert warm.tolist() == cold.tolist()


# What the guided sampler makes of it.


def launches(space: LegalSpace, seed: int, belief: Belief | None) -> int:
    """Until a point within 2 % of the fastest was measured; the baseline comes first."""
    best = min(new_time(point) for point in space.points)

    def measure(point: Point) -> Outcome:
        return ok(new_time(point))

    sweep = Sweep(space, measure)
    sampler = GuidedSampler(Encoding(space), seed, Knowledge(belief=belief))
    for number in range(1, 60):
        if new_time(sweep.step(sampler)) <= 1.02 * best:
            return number
    return 60


@pytest.fixture(scope="module")
def unaided(space: LegalSpace) -> list[int]:
    return [launches(space, seed, None) for seed in range(10)]


def test_it_saves_launches(space: LegalSpace, belief: OlderStudyBelief, unaided: list[int]) -> None:
    aided = [launches(space, seed, belief) for seed in range(10)]
    assert statistics.median(aided) <= 0.6 * statistics.median(unaided)


def test_one_that_misleads_costs_little(space: LegalSpace, unaided: list[int]) -> None:
    misled = belief_of(older_runs(lambda values: 1 / old_time(values)), space)
    with_it = [launches(space, seed, misled) for seed in range(10)]
    assert statistics.mean(with_it) <= 1.4 * statistics.mean(unaided)
