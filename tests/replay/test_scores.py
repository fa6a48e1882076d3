"""Figures of a comparison, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.replay.case import ReplayCase
from autotune.replay.run import SeedRun
from autotune.replay.scores import curve_rows, run_rows, score, summary_row

TABLE = "a,batch_time_s\n1,1.0\n2,1.05\n3,2.0\n4,\n"


@pytest.fixture
def case(read) -> ReplayCase:
    return ReplayCase(read(TABLE), 3)


def seed_run(case: ReplayCase, seed: int, rows: tuple[int, ...], **rest: object) -> SeedRun:
    best = np.minimum.accumulate([case.table.counted_s[row] for row in rows])
    given = {"exported_s": float(best[-1]), "launches": 3, "ask_ms": 2.0, **rest}
    return SeedRun(seed, rows, best, **given)


def test_the_summary_by_hand(case: ReplayCase) -> None:
    # Best so far: 2, 1.05, 1 / 2, 2 (fails), 2 (again) / 1, 1, 1 (fails).
    runs = [
        seed_run(case, 0, (2, 1, 0)),
        seed_run(case, 1, (2, 3, 3)),
        seed_run(case, 2, (0, 1, 3)),
    ]
    row = summary_row(case, "mine", runs)
    assert list(row)[:8] == [
        "sampler",
        "mean_regret",
        "hit_5pct",
        "median_evals_to_5pct",
        "score",
        "oom",
        "duplicates",
        "ask_ms",
    ]
    assert row["mean_regret"] == pytest.approx((0 + 1 + 0) / 3)
    assert row["mean_regret_se"] == pytest.approx(1 / 3)  # sqrt(1/3) / sqrt(3)
    assert row["hit_5pct"] == pytest.approx(2 / 3)
    assert row["hit_5pct_se"] == pytest.approx(math.sqrt(2 / 27))
    assert row["median_evals_to_5pct"] == 2  # of 2, never, 1
    assert row["oom"] == pytest.approx(3 / 3)
    assert row["oom_second_half"] == pytest.approx(2 / 3)  # the third launch only
    assert row["duplicates"] == pytest.approx(1 / 3)
    assert row["ask_ms"] == 2.0
    # Random search: times 1, 1.05, 2, 2; the best of one, two, three draws of four.
    random = [6.05 / 4, (1 * 3 + 1.05 * 2 + 2 * 1) / 6, (1 * 3 + 1.05) / 4]
    mean = [(2 + 2 + 1) / 3, (1.05 + 2 + 1) / 3, (1 + 2 + 1) / 3]
    by_hand = np.mean([(r - f) / (r - 1) for r, f in zip(random, mean, strict=True)])
    assert row["score"] == pytest.approx(by_hand)


def test_half_of_the_seeds_that_never_come_near_is_no_median(case: ReplayCase) -> None:
    runs = [seed_run(case, 0, (2, 1, 0)), seed_run(case, 1, (2, 3, 3))]
    assert summary_row(case, "mine", runs)["median_evals_to_5pct"] is None
    assert summary_row(case, "mine", runs[:1])["mean_regret_se"] is None


def test_what_is_exported_decides_regret_and_hits(case: ReplayCase) -> None:
    """With noise another point than the best one launched may be exported."""
    row = summary_row(case, "mine", [seed_run(case, 0, (0, 1, 2), exported_s=2.0, launches=21)])
    assert (row["mean_regret"], row["hit_5pct"], row["launches"]) == (1.0, 0.0, 21)
    assert row["median_evals_to_5pct"] == 1


def test_a_score_is_0_for_random_search_1_for_the_optimum_and_negative_below() -> None:
    random = np.array([4.0, 3.0, 2.0, 1.0])
    assert score(random, random, 1.0) == 0.0
    assert score(np.ones(4), random, 1.0) == 1.0
    assert score(np.full(4, 5.0), random, 1.0) == pytest.approx(np.mean([-1 / 3, -1, -3]))
    assert math.isnan(score(np.ones(2), np.ones(2), 1.0))


def test_curves_and_runs_have_a_row_for_each(case: ReplayCase) -> None:
    runs = {"a": [seed_run(case, 0, (2, 1, 0)), seed_run(case, 5, (0, 1, 3))]}
    curves = curve_rows(case, runs)
    assert [(row["sampler"], row["evaluation"]) for row in curves] == [("a", 1), ("a", 2), ("a", 3)]
    assert [row["mean_best_s"] for row in curves] == pytest.approx([1.5, 1.025, 1.0])
    assert [row["mean_regret"] for row in curves] == pytest.approx([0.5, 0.025, 0.0])
    assert [row["hit_5pct"] for row in curves] == [0.5, 1.0, 1.0]
    assert curves[0]["regret_q25"] == pytest.approx(0.25)
    assert curves[0]["regret_q75"] == pytest.approx(0.75)
    assert curves[0]["random_expectation_s"] == pytest.approx(6.05 / 4)
    rows = run_rows(case, runs)
    assert [(row["seed"], row["evals_to_5pct"], row["oom"]) for row in rows] == [
        (0, 2, 0),
        (5, 1, 1),
    ]


def test_with_a_baseline_random_search_starts_there_too(case: ReplayCase) -> None:
    planted = ReplayCase(case.table, 2, baseline=2)
    # After the baseline's 2.0 one draw of 1, 1.05 and 2.
    assert planted.random_expectation_s.tolist() == pytest.approx([2.0, 4.05 / 3])
