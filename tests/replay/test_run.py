"""One sampler with one seed on a recorded table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UserError
from autotune.measure.outcome import Status
from autotune.replay.baseline import baseline_row
from autotune.replay.case import RecordedDevice, RecordedSpace, ReplayCase
from autotune.replay.noise import RunNoise
from autotune.replay.run import SeedRun, certify, checked_sampler, run_seed
from autotune.replay.table import ReplayTable
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import FixedPointSampler
from autotune.space.point import Point
from autotune.study.storage import OptunaStore
from tests.replay.conftest import peak_of, time_of


def run(case: ReplayCase, setting: object, seed: int = 0) -> SeedRun:
    return run_seed(case, RecordedSpace(case.table, case.baseline), setting, seed)


def case_of(table: ReplayTable, evaluations: int, **rest: object) -> ReplayCase:
    return ReplayCase(table, evaluations, limit_bytes=table.separating_limit_bytes, **rest)


def test_the_planted_table_is_what_was_planted(planted: ReplayTable) -> None:
    assert len(planted) == 128
    assert int((~planted.usable).sum()) == 2 * sum(x + y > 11 for x in range(8) for y in range(8))
    assert planted.optimum_s == 1.0
    assert planted.separating_limit_bytes == 110
    space = RecordedSpace(planted)
    assert [space.row(planted.point(row)) for row in range(128)] == list(range(128))
    assert space.row(Point({"x": 8, "y": 0, "kind": "a"})) is None


@pytest.mark.parametrize(
    ("setting", "evaluations"), [("tpe", 30), ("random", 128), ("exhaustive", 128)]
)
def test_every_point_is_legal_and_launched_once(
    planted: ReplayTable, setting: str, evaluations: int
) -> None:
    found = run(case_of(planted, evaluations), setting)
    assert len(set(found.rows)) == evaluations
    assert set(found.rows) <= set(range(128))
    assert (found.duplicates, found.illegal, found.launches) == (0, 0, evaluations)
    if evaluations == 128:
        assert found.exported_s == 1.0


def test_the_best_so_far_is_by_the_true_times_of_usable_points(planted: ReplayTable) -> None:
    found = run(case_of(planted, 40), "random", seed=3)
    worst = max(time_of(x, y, "a") for x in range(8) for y in range(8) if x + y <= 11)
    expected, best = [], worst
    for row in found.rows:
        point = planted.point(row)
        if peak_of(point["x"], point["y"]) <= 110:
            best = min(best, round(time_of(point["x"], point["y"], point["kind"]), 6))
        expected.append(best)
    assert found.best_s.tolist() == expected
    assert found.exported_s == expected[-1]


@pytest.mark.parametrize("baseline", [None, 100])
def test_random_search_does_what_can_be_expected_of_it(
    planted: ReplayTable, baseline: int | None
) -> None:
    """Within four standard errors of the exact expectation, at every evaluation."""
    case = case_of(planted, 12, baseline=baseline)
    space = RecordedSpace(planted, baseline)
    best = np.array([run_seed(case, space, "random", seed).best_s for seed in range(60)])
    error = best.std(axis=0, ddof=1) / np.sqrt(len(best))
    difference = np.abs(best.mean(axis=0) - case.random_expectation_s)
    assert (difference <= 4 * error + 1e-12).all()


def test_evaluations_are_counted_from_one() -> None:
    found = SeedRun(0, (4, 5, 6), np.array([3.0, 1.05, 1.0]), 1.0, 3, 0.1)
    assert found.evaluations_to(1.05) == 2
    assert found.evaluations_to(3.0) == 1
    assert found.evaluations_to(0.9) is None
    assert replace(found, rows=(4, -1, 4, -1)).duplicates == 2


@pytest.mark.parametrize("setting", ["tpe", "random"])
def test_the_same_seed_is_the_same_run(planted: ReplayTable, setting: str) -> None:
    case = case_of(planted, 20)
    assert run(case, setting, 7).rows == run(case, setting, 7).rows
    assert run(case, setting, 7).rows != run(case, setting, 8).rows


def test_samplers_are_told_what_a_sweep_tells_them(planted: ReplayTable) -> None:
    """Times, peaks against the limit, and what does not run as a violation."""
    case = case_of(planted, 3)
    space = RecordedSpace(planted)
    device = RecordedDevice(case, space, 0)
    store = OptunaStore.in_memory(space.encoding, case.limit_bytes)
    points = [
        Point({"x": 5, "y": 2, "kind": "b"}),
        Point({"x": 7, "y": 7, "kind": "a"}),
        Point({"x": 0, "y": 0, "kind": "a"}),
    ]
    for point in points:
        number, asked = store.ask(FixedPointSampler(space.encoding, point))
        store.tell(device.run(number, asked), 9.0)
    trials = store.study.get_trials()
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 3
    assert [trial.value for trial in trials] == [1.0, 9.0, pytest.approx(time_of(0, 0, "a"))]
    told = [trial.constraints["memory"] for trial in trials]
    assert told == [pytest.approx(70 / 110 - 1), pytest.approx(140 / 110 - 1), -1.0]


def test_what_does_not_run_stands_for_the_slowest_time_so_far(
    planted: ReplayTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a sweep (autotune.study.storage.slowest)."""
    stores, made = [], OptunaStore.in_memory

    def keep(encoding: Encoding, limit: int | None) -> OptunaStore:
        stores.append(made(encoding, limit))
        return stores[-1]

    monkeypatch.setattr(OptunaStore, "in_memory", keep)
    found = run(case_of(planted, 40), "random")
    told = [trial.value for trial in stores[0].study.get_trials()]
    refused = [at for at, row in enumerate(found.rows) if not planted.usable[row]]
    assert refused
    for at in refused:
        times = [told[n] for n in range(at) if n not in refused]
        assert told[at] == max(times, default=1.0)


def test_without_peaks_what_does_not_run_is_still_a_violation(read) -> None:
    table = read("a,batch_time_s\n1,0.5\n2,\n")
    case = case_of(table, 2)
    assert case.limit_bytes is None
    space = RecordedSpace(table)
    store = OptunaStore.in_memory(space.encoding, case.limit_bytes)
    device = RecordedDevice(case, space, 0)
    for value in (1, 2):
        number, asked = store.ask(FixedPointSampler(space.encoding, Point({"a": value})))
        store.tell(device.run(number, asked), 0.5)
    feasible, refused = (trial.constraints["memory"] for trial in store.study.get_trials())
    assert feasible <= 0 < refused


def test_a_crash_is_a_failure_that_samplers_do_not_see(read) -> None:
    table = read("a,batch_time_s,status\n1,0.5,ok\n2,,failed\n")
    space = RecordedSpace(table)
    record = RecordedDevice(case_of(table, 2), space, 0).run(0, Point({"a": 2}))
    assert record.status is Status.FAILED
    assert table.refused.tolist() == [False, False]


def test_the_baseline_is_the_first_launch(planted: ReplayTable) -> None:
    row = baseline_row(planted, {"x": 0, "y": 0, "kind": "a"})
    found = run(case_of(planted, 5, baseline=row), "random")
    assert found.rows[0] == row
    assert len(found.rows) == 5
    assert found.best_s[0] == pytest.approx(time_of(0, 0, "a"))


def test_which_row_is_the_baseline(read) -> None:
    table = read("a,b,batch_time_s\n1,x,4\n2,x,1\n3,,3\n4,,2\n5,x,\n")
    times = table.time_s
    assert times[baseline_row(table, "worst")] == 4
    assert times[baseline_row(table, "median")] == 2  # the lower of the two in the middle
    assert times[baseline_row(table, {"a": 3.0, "b": None})] == 3
    assert times[baseline_row(table, {"a": 2})] == 1
    assert baseline_row(table, None) is None
    for setting, message in [
        ("best", "'best' is unknown; give null, median, worst, recorded, or values"),
        ("recorded", "is no report/trials.csv of a study"),
        ({"a": 1, "c": 2}, "unknown parameter 'c'"),
        ({"a": 9}, "a=9 is in no row; allowed: 1, 2, 3, 4, 5"),
        ({"a": True}, "a=True is in no row"),
        ({"a": 1, "b": None}, "no row of T.csv has these values"),
        ({"b": None}, "fits 2 rows; give also a value of a"),
    ]:
        with pytest.raises(UserError, match=message):
            baseline_row(table, setting)


def test_a_wrong_sampler_is_named_by_the_key_of_replay(planted: ReplayTable) -> None:
    with pytest.raises(
        UserError, match=r"replay\.samplers='tpee' is neither .*; did you mean 'tpe'"
    ):
        checked_sampler("tpee", RecordedSpace(planted).encoding, 0)


@given(st.integers(0, 2**32 - 1), st.integers(0, 10**6))
def test_noise_is_that_of_the_seed_and_the_launch(seed: int, launch: int) -> None:
    noise = RunNoise(0.01, 0.5, 2.0)
    assert noise.of_launch(seed, launch) == noise.of_launch(seed, launch)
    assert RunNoise().of_launch(seed, launch) == 1.0


def test_noise_is_as_large_and_as_frequent_as_asked_for() -> None:
    noise = RunNoise(0.005, 0.1, 1.7)
    factors = np.array([noise.of_launch(seed, n) for seed in range(40) for n in range(100)])
    outliers = factors > 1.4
    assert outliers.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 4000))
    assert np.log(factors[~outliers]).std() == pytest.approx(0.005, rel=0.1)
    assert np.exp(np.log(factors[outliers]).mean()) == pytest.approx(1.7, rel=0.005)


def test_noise_does_not_cost_the_best_point_its_export(planted: ReplayTable) -> None:
    """Unless its own launch was disturbed beyond what certification takes for a bad moment."""
    for factor in (1.3, 1.7):
        noise = RunNoise(0.005, 0.1, factor)
        case = case_of(planted, 120, noise=noise)
        optimum = next(row for row in range(128) if planted.counted_s[row] == 1.0)
        for seed in range(3):
            found = run(case, "random", seed)
            launch = found.rows.index(optimum) if optimum in found.rows else None
            is_seen = launch is not None and noise.of_launch(seed, launch) < 1.5
            if is_seen:
                assert found.exported_s == 1.0, (factor, seed)
            assert found.launches > 120


def test_certification_is_that_of_a_sweep(planted: ReplayTable) -> None:
    """Every repeat is of a measured point, and with a baseline the last runs are a contest."""
    row = baseline_row(planted, "median")
    case = case_of(planted, 30, baseline=row, noise=RunNoise(0.005, 0.1, 1.7))
    space = RecordedSpace(planted, row)
    device = RecordedDevice(case, space, 1)
    measured = [space.legal.baseline, *(planted.point(n) for n in range(40, 69) if n != row)]
    records = [device.run(number, point) for number, point in enumerate(measured)]
    results = certify(case, device, records, space.legal.baseline)
    assert results.contest.next_runs(case.certify.rules) == []
    assert {repeat.record.parameters for repeat in results.repeats} <= set(measured)
    assert results.repeats[-1].role.value == "certify"
    assert device.launches == len(records) + len(results.repeats)
    clock = [r.started_at for r in (*records, *(x.record for x in results.repeats))]
    assert clock == sorted(set(clock))
