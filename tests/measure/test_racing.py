"""When a trial has run for long enough."""

from __future__ import annotations

from autotune.measure.racing import Decision, RaceRules, decide
from autotune.measure.spread import RunSpread
from autotune.measure.timing import RunEstimate

RULES = RaceRules(min_steps=8, precision=0.03)
SPREAD = RunSpread(0.01, 100)


def run(mean_s: float, steps: int = 8, error_s: float | None = 0.02) -> RunEstimate:
    return RunEstimate(mean_s, error_s, max(steps - 1, 1), tuple(range(steps)))


def test_nothing_is_decided_before_the_least_steps() -> None:
    assert decide(run(9.0, steps=7), RULES, SPREAD, 1.0) is Decision.GO_ON
    assert decide(run(1.0, steps=7, error_s=0.0), RULES, SPREAD, None) is Decision.GO_ON


def test_a_trial_whose_lower_bound_is_above_the_best_loses() -> None:
    assert decide(run(1.2), RULES, SPREAD, 1.05) is Decision.LOSES


def test_a_trial_whose_interval_meets_the_bests_goes_on() -> None:
    assert decide(run(1.08), RULES, SPREAD, 1.05) is Decision.GO_ON


def test_a_narrow_interval_is_enough() -> None:
    assert decide(run(1.0, error_s=0.01), RULES, SPREAD, 1.05) is Decision.ENOUGH


def test_the_best_itself_is_measured_to_the_precision() -> None:
    assert decide(run(1.0, error_s=0.05), RULES, SPREAD, None) is Decision.GO_ON


def test_a_run_that_breaks_the_limit_is_stopped_at_the_first_look() -> None:
    assert decide(run(1.0, steps=4), RULES, SPREAD, None, over_limit=True) is Decision.OVER_LIMIT
    assert decide(run(1.0, steps=3), RULES, SPREAD, None, over_limit=True) is Decision.GO_ON


def test_a_trial_that_is_far_behind_is_stopped_at_the_first_look() -> None:
    first = run(2.0, steps=4, error_s=None)
    assert decide(first, RULES, SPREAD, 1.05, step_noise=0.03) is Decision.LOSES
    assert decide(first, RULES, SPREAD, 1.05, step_noise=None) is Decision.GO_ON
    assert decide(run(2.0, steps=3), RULES, SPREAD, 1.05, step_noise=0.03) is Decision.GO_ON


def test_first_steps_that_may_be_warm_up_decide_nothing() -> None:
    close = run(1.2, steps=4, error_s=None)
    assert decide(close, RULES, SPREAD, 1.05, step_noise=0.01) is Decision.GO_ON


def test_a_point_that_runs_again_is_done_when_it_is_no_faster_than_it_was() -> None:
    rules = RaceRules(8, 0.03, confirms_s=0.92 * 1.3)
    assert decide(run(1.25, steps=4), rules, SPREAD, None) is Decision.LOSES
    assert decide(run(1.0, steps=4), rules, SPREAD, None) is Decision.GO_ON


def test_losers_may_be_kept() -> None:
    rules = RaceRules(8, 0.03, drop_losers=False)
    assert decide(run(9.0, error_s=0.5), rules, SPREAD, 1.0) is Decision.GO_ON
