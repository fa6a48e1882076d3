"""The winner is the truly fastest point, whatever a night does to single runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from autotune.certify.results import next_repeat
from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import verdict_of
from autotune.measure.outcome import Outcome, Status
from autotune.study.repeat import Repeat, Role

from .conftest import Night, Times, point

# Seconds a batch; the first is the baseline, d is the fastest.
TRUE = {"base": 1.0, "a": 0.80, "b": 0.74, "c": 0.72, "d": 0.68, "e": 0.95, "f": 1.3, "g": 0.9}


def noisy(seed: int = 0, noise: float = 0.01) -> Times:
    draw = random.Random(seed)
    return lambda name, run, at: TRUE[name] * (1 + draw.gauss(0, noise))


def slowed(name: str, when: Callable[[int], bool], times: Times) -> Times:
    """30 % slower in those runs of one point."""
    return lambda n, run, at: times(n, run, at) * (1.3 if n == name and when(run) else 1.0)


def test_on_a_quiet_night_the_fastest_wins_and_is_certified() -> None:
    verdict = Night(noisy(), list(TRUE)).all_of_it()
    assert verdict.winner.point == point("d")
    assert verdict.certified
    assert not verdict.keep_baseline
    assert verdict.gain is not None
    assert verdict.gain.ci95 is not None
    low, high = verdict.gain.ci95
    assert low < 1 / 0.68 < high
    assert verdict.winner.runs >= 3


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("first", [0, 1], ids=["slow at first", "slow later"])
@pytest.mark.parametrize("name", list(TRUE))
def test_slowness_in_half_of_the_runs_of_one_point_changes_nothing(
    name: str, first: int, seed: int
) -> None:
    times = slowed(name, lambda run: run % 2 == first, noisy(seed))
    verdict = Night(times, list(TRUE)).all_of_it()
    assert verdict.winner.point == point("d")


def test_disturbed_runs_are_counted_and_named() -> None:
    verdict = Night(slowed("d", lambda run: run % 2 == 0, noisy()), list(TRUE)).all_of_it()
    assert verdict.winner.disturbed > 0
    assert verdict.winner.time.mean_s == pytest.approx(0.68, rel=0.03)


@pytest.mark.parametrize("order", [list(TRUE), ["base", "d", "a", "b", "c", "e", "f", "g"]])
@pytest.mark.parametrize("drift", [0.05, -0.05])
@pytest.mark.parametrize("seed", range(5))
def test_a_machine_that_drifts_by_5_percent_changes_nothing(
    order: list[str], drift: float, seed: int
) -> None:
    true, length = noisy(seed, 0.005), 20 * 10.0

    def times(name: str, run: int, at: float) -> float:
        return true(name, run, at) * (1 + drift * min(at / length, 1.0))

    night = Night(times, order, control_every=2)
    assert night.all_of_it().winner.point == point("d")


@pytest.mark.parametrize("seed", range(10))
def test_a_baseline_that_is_the_fastest_is_exported(seed: int) -> None:
    draw = random.Random(seed)

    def times(name: str, run: int, at: float) -> float:
        return (1.0 if name == "base" else 1.015) * (1 + draw.gauss(0, 0.01))

    verdict = Night(times, ["base", "a", "b", "c"]).all_of_it()
    assert verdict.keep_baseline
    assert verdict.winner.point == point("base")
    assert verdict.gain is not None
    assert verdict.gain.ci95 is not None
    assert verdict.gain.ci95[0] <= 1


def test_a_point_that_learns_otherwise_is_rejected_with_the_reason() -> None:
    night = Night(noisy(), list(TRUE), losses={"d": (2.2, 1.9)})
    verdict = night.all_of_it()
    assert verdict.winner.point == point("c")
    [(rejected, reason)] = night.results.rejected
    assert rejected.point == point("d")
    assert reason.startswith("learns otherwise")


def test_a_finalist_that_fails_when_it_runs_again_is_replaced() -> None:
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=0))
    night.search()
    night.status["d"] = Status.OOM
    verdict = night.certify()
    assert verdict.winner.point == point("c")
    assert verdict.certified


def test_a_point_over_the_limit_never_takes_part() -> None:
    verdict = Night(noisy(), list(TRUE), status={"d": Status.OVER_LIMIT}).all_of_it()
    assert verdict.winner.point == point("c")


def test_a_baseline_that_cannot_run_leaves_the_finalists_to_themselves() -> None:
    verdict = Night(noisy(), list(TRUE), status={"base": Status.OOM}).all_of_it()
    assert verdict.winner.point == point("d")
    assert (verdict.gain, verdict.keep_baseline) == (None, False)


def test_a_point_stopped_in_a_bad_moment_gets_another_chance() -> None:
    """It lost the race since its run was slowed; it is not usable by that run."""
    night = Night(slowed("d", lambda run: run == 0, noisy()), list(TRUE))
    night.status["d"] = Status.STOPPED
    night.search()
    night.status["d"] = Status.OK
    assert night.certify().winner.point == point("d")


def test_rechecks_are_bounded() -> None:
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=2))
    night.all_of_it()
    assert sum(repeat.role is Role.RECHECK for repeat in night.repeats) == 2


def test_runs_are_interleaved_and_every_other_round_goes_backwards() -> None:
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=0))
    night.all_of_it()
    rounds: dict[int, list[str]] = {}
    for repeat in night.repeats:
        rounds.setdefault(repeat.round, []).append(repeat.record.parameters["name"])
    assert len(rounds) >= 3
    assert rounds[0][0] == "base"
    assert rounds[1] == rounds[0][::-1]


def test_a_contest_goes_on_where_it_was_interrupted() -> None:
    whole = Night(noisy(), list(TRUE))
    whole.all_of_it()
    broken = replace(whole, repeats=whole.repeats[: len(whole.repeats) // 2])
    asked = []
    while len(broken.repeats) < len(whole.repeats):
        following = whole.repeats[len(broken.repeats)]
        asked.append(next_repeat(broken.results))
        assert asked[-1] == (following.role, following.record.parameters, following.round)
        broken.repeats.append(following)
    assert next_repeat(broken.results) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_machine_that_gets_much_faster_in_the_middle_disturbs_nobody(seed: int) -> None:
    """Somebody else's job ends: every run after that is faster, of every point alike."""
    true = noisy(seed)
    night = Night(lambda n, r, at: true(n, r, at) * (1.5 if at < 200 else 1.0), list(TRUE))
    verdict = night.all_of_it()
    assert verdict.winner.point == point("d")
    assert verdict.certified
    # The round in which it happens may count as disturbed, and no other.
    assert all(finalist.disturbed <= 1 for finalist in verdict.finalists)


def test_a_recheck_that_is_lost_is_made_again() -> None:
    night = Night(slowed("d", lambda run: run == 0, noisy()), list(TRUE))
    night.search()
    lost = Outcome(Status.INFRASTRUCTURE, "the node is gone")
    for name in TRUE:
        record = replace(night.records[list(TRUE).index(name)], trial=len(night.repeats))
        night.repeats.append(Repeat(Role.RECHECK, replace(record, outcome=lost)))
    assert night.certify().winner.point == point("d")


def test_one_failure_of_a_finalist_is_forgiven_and_two_are_not() -> None:
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=0))
    night.search()
    night.status["d"] = Status.HUNG
    night.repeat(Role.CERTIFY, "d", 0)
    assert night.results.rejection(night.results.standings[0]) is None
    night.repeat(Role.CERTIFY, "d", 1)
    assert "hung" in (night.results.rejection(night.results.standings[0]) or "")


def test_a_baseline_that_runs_out_of_memory_when_it_runs_again_is_not_exported() -> None:
    night = Night(noisy(), list(TRUE))
    night.search()
    night.status["base"] = Status.OOM
    verdict = night.certify()
    assert verdict.winner.point == point("d")
    assert verdict.gain is None


def test_points_within_reach_that_ran_once_only_are_known() -> None:
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=1))
    night.all_of_it()
    assert len(night.results.within_reach) > 0


def test_one_lone_usable_point_needs_no_contest() -> None:
    verdict = Night(noisy(), ["base"]).all_of_it()
    assert verdict.winner.point == point("base")
    assert verdict.keep_baseline


def test_a_contest_that_has_just_begun_does_not_take_the_lead_away() -> None:
    """Killed after its first round, the sweep must leave the fastest trial in `best.yaml`."""
    night = Night(noisy(), list(TRUE), CertifySettings(max_rechecks=0))
    night.search()
    while len(night.repeats) < 4:
        order = next_repeat(night.results)
        assert order is not None
        night.repeat(order[0], order[1]["name"], order[2])
        verdict = verdict_of(night.results)
        assert verdict is not None
        assert verdict.winner.point == point("d")
        assert not verdict.certified
