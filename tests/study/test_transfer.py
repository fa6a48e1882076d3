"""What an older study is worth to a new one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autotune.measure.outcome import Status
from autotune.search.encoding import Encoding
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.identity import Identity, differences
from autotune.study.transfer import plan_transfer
from autotune.study.trial_record import GateNote, TrialRecord

from .older import HUGE, LARGER, NEWER, OLD, PARTS, record, statuses, take


def results(space: LegalSpace) -> list[TrialRecord]:
    a, b, c, d = space.points[:4]
    return [
        record(0, a, 2.0, Status.OK, 900),
        record(2, b, 1.0, Status.OK, 950),
        record(3, c, 0.5, Status.OVER_LIMIT, 1100),
        record(4, d, None, Status.OOM, 1500),
        record(5, {"sp_degree": 64, "micro_batch_size": 1}, 0.1, Status.OK, 10),
        record(6, space.points[5], None, Status.INFRASTRUCTURE, 0),
    ]


# The same conditions.


def test_the_same_machine_and_model_keep_their_results(space: LegalSpace) -> None:
    new = replace(OLD, parts={**PARTS, "space": {"parameters": {}}, "memory": {"limit": 0.8}})
    plan = take(results(space), space, new, 920)
    assert [r.trial for r in plan.measured] == [0, 1, 2, 3]
    # The new limit of 920 bytes is applied to what was measured.
    assert statuses(plan) == {0: "ok", 2: "over_limit", 3: "over_limit", 4: "oom"}
    assert [r.taken_from for r in plan.measured] == [
        {"study": "old", "trial": number} for number in (0, 2, 3, 4)
    ]
    assert not any(r.counts for r in plan.measured)
    assert plan.belief is None
    assert plan.explanation.startswith("4 of 6 results of 'old' hold here as measured")


def test_a_higher_limit_makes_measured_points_feasible(space: LegalSpace) -> None:
    plan = take(results(space), space, limit=1200)
    assert plan.measured[2].status is Status.OK
    assert plan.proposals == ()


def test_of_several_results_of_a_point_the_latest_counts(space: LegalSpace) -> None:
    first, again = record(0, space.points[0], 2.0), record(1, space.points[0], 3.0)
    plan = take([first, again], space)
    assert [r.outcome.batch_time_s for r in plan.measured] == [3.0]


def test_refused_points_were_never_measured(space: LegalSpace) -> None:
    """Nor does it count here what the gate expected there."""
    note = GateNote(0.01, 5000)
    refused = [record(n, p, 1.0, Status.SKIPPED, gate=note) for n, p in enumerate(space.points)]
    for new in (OLD, LARGER):
        plan = take(refused, space, new)
        assert (plan.measured, plan.proposals, plan.belief) == ((), (), None)
    checked = record(0, space.points[0], 1.0, gate=replace(note, checked=True))
    assert [r.gate for r in take([checked], space).measured] == [None]


def test_what_ran_over_the_limit_for_a_moment_only_is_measured_again(space: LegalSpace) -> None:
    short, whole, unknown = (
        record(0, space.points[1], 1.0, Status.OVER_LIMIT, 1100, steps=4),
        record(1, space.points[2], 2.0, Status.OVER_LIMIT, 1100, steps=8),
        record(2, space.points[3], None, Status.OVER_LIMIT, 1100),
    )
    same = take([short, whole, unknown], space, limit=1000)
    assert statuses(same) == dict.fromkeys((0, 1, 2), "over_limit")
    higher = take([short, whole, unknown], space, limit=1200)
    assert statuses(higher) == {1: "ok"}
    assert higher.proposals == (space.points[1],)
    assert "2 ended too early to tell whether they win here" in higher.explanation


def stopped(space: LegalSpace) -> list[TrialRecord]:
    """Two that lost against the fastest one, which needs the most memory."""
    fastest, second, near, far = space.points[:4]
    return [
        record(0, second, 1.5, Status.OK, 800, ci95_s=(1.4, 1.6)),
        record(1, fastest, 1.0, Status.OK, 950, ci95_s=(0.95, 1.05)),
        record(2, near, 1.4, Status.STOPPED, 700, ci95_s=(1.3, 1.5)),
        record(3, far, 2.0, Status.STOPPED, 990, ci95_s=(1.8, 2.2)),
    ]


def test_what_lost_has_lost_while_the_winner_is_there(space: LegalSpace) -> None:
    expected = {0: "ok", 1: "ok", 2: "stopped", 3: "stopped"}
    for limit in (1000, HUGE):
        plan = take(stopped(space), space, limit=limit)
        assert (statuses(plan), plan.proposals) == (expected, ())
    # Repeats of the winner may have told more of it than its own record does.
    close = record(2, space.points[2], 1.1, Status.STOPPED, 700, ci95_s=(1.04, 1.16))
    assert statuses(take([*stopped(space)[:2], close], space)) == {0: "ok", 1: "ok", 2: "stopped"}


def test_what_lost_against_a_point_that_is_too_large_now_may_win(space: LegalSpace) -> None:
    plan = take(stopped(space), space, limit=900)
    # 2 may be faster than 0, which is the fastest now; 3 is over the limit itself.
    assert statuses(plan) == {0: "ok", 1: "over_limit", 3: "over_limit"}
    assert plan.proposals == (space.points[2],)
    # Of a limit that 3 keeps to, it is too slow all the same.
    without_fastest = [r for r in stopped(space) if r.trial != 1]
    assert statuses(take(without_fastest, space))[3] == "stopped"


# Other conditions.


def test_another_environment_gives_first_proposals_only(space: LegalSpace) -> None:
    known = [*results(space), record(7, space.points[7], 1.5, peak=900)]
    plan = take(known, space, NEWER, 1000)
    assert (plan.measured, plan.belief) == ((), None)
    assert plan.proposals == (space.points[1], space.points[7])
    assert "environment changed" in plan.explanation
    assert "2 of its best points that are legal here are measured first" in plan.explanation
    # On the same device the new limit tells which of them are of use.
    assert take(known, space, NEWER, 920).proposals == (space.points[7],)
    assert take(known, space, NEWER, 1200).proposals[0] == space.points[2]
    # Bytes of another model are not bytes of this one.
    assert take(known, space, LARGER, 920).proposals[0] == space.points[1]


@pytest.mark.parametrize("limit", [920, 1000])
def test_a_device_with_less_memory_is_the_same_device(space: LegalSpace, limit: int) -> None:
    """What did not fit into the new limit there is not measured first here, past the gate."""
    known = [*results(space), record(7, space.points[7], 1.5, peak=900)]
    cluster = {**PARTS["cluster"], "device_memory": "66MiB"}
    old = replace(OLD, parts={**PARTS, "cluster": cluster})
    smaller = replace(OLD, parts={**PARTS, "cluster": {**cluster, "device_memory": "40MiB"}})
    plan = plan_transfer("old", known, old, smaller, space, limit)
    assert plan.measured == ()
    assert "cluster changed" in plan.explanation
    expected = [space.points[7]] if limit == 920 else [space.points[1], space.points[7]]
    assert list(plan.proposals) == expected
    # Of more devices, each holds something else.
    wider = replace(OLD, parts={**PARTS, "cluster": {**cluster, "devices_per_trial": 4}})
    assert plan_transfer("old", known, old, wider, space, limit).proposals[0] == space.points[1]


def test_the_baseline_is_none_of_the_points_that_are_measured_first(space: LegalSpace) -> None:
    """It is the first trial anyway: another point may have its place."""
    seconds = [1.0 + 0.1 * n for n in range(8)]
    known = [record(n, space.points[n], seconds[n]) for n in range(8)]
    assert space.points[0] == space.baseline
    assert take(known, space, NEWER).proposals[0] == space.points[1]
    assert len(take(known[:4], space, NEWER).proposals) == 3


def many(space: LegalSpace) -> list[TrialRecord]:
    """All 45 points, with the largest micro-batches the fastest."""
    return [
        record(n, p, 4 / p["micro_batch_size"] + 0.1 * p["sp_degree"], peak=300 + n)
        for n, p in enumerate(space.points)
    ]


@pytest.mark.parametrize("new", [LARGER, NEWER])
def test_results_that_do_not_hold_tell_which_points_are_good(
    space: LegalSpace, new: Identity
) -> None:
    plan = take(many(space), space, new)
    assert plan.measured == ()
    assert len(plan.proposals) == 3
    assert {p["micro_batch_size"] for p in plan.proposals} == {4}
    assert "time and memory guides the search" in plan.explanation
    assert plan.belief is not None
    # One run of ten times as long tells how long all others take.
    seen, truth = space.codes[:1], np.array([r.outcome.batch_time_s for r in many(space)]) * 10
    said = plan.belief.log_seconds(seen, truth[:1], space.codes)
    assert said is not None
    np.testing.assert_allclose(np.exp(said), truth, rtol=0.25)


def test_peaks_of_another_model_say_nothing_by_themselves(space: LegalSpace) -> None:
    nothing = (space.codes[:0], np.zeros(0), space.codes)
    other, same = (take(many(space), space, new).belief for new in (LARGER, NEWER))
    assert other is not None
    assert same is not None
    assert other.log_bytes(*nothing) is None
    said = same.log_bytes(*nothing)
    assert said is not None
    np.testing.assert_allclose(np.exp(said), [300 + n for n in range(45)], rtol=0.1)


def test_no_belief_where_most_results_hold_or_few_are_left(space: LegalSpace) -> None:
    elsewhere = [
        replace(r, trial=100 + r.trial, parameters=Point({**r.parameters, "x": 1}))
        for r in many(space)
    ]
    assert take([*many(space), *elsewhere[:20]], space).belief is None
    assert take([*many(space)[:5], *elsewhere[:20]], space).belief is not None
    assert take(many(space)[:5], space, LARGER).belief is None


def test_a_study_that_goes_on_plans_as_when_it_began(space: LegalSpace) -> None:
    """The older one may have gone on as well."""
    early = [replace(r, ended_at=float(r.trial)) for r in many(space)]
    late = replace(record(99, space.points[3], 0.001), ended_at=200.0)
    begun = take(early, space, LARGER)
    resumed = take([*early, late], space, LARGER, until=100.0)
    assert resumed.proposals == begun.proposals
    assert begun.belief is not None
    assert resumed.belief is not None
    seen = Encoding(space).row_of(space.points[7])[None]
    asked = (seen, np.array([3.0]), space.codes)
    one, other = begun.belief.log_seconds(*asked), resumed.belief.log_seconds(*asked)
    assert one is not None
    assert other is not None
    assert one.tolist() == other.tolist()
    assert take([*early, late], space, LARGER).proposals[0] == space.points[3]


def test_differences_name_old_and_new_values() -> None:
    parts = {**PARTS, "space": {"parameters": {"a": {"choices": [1, 2, 8]}, "b": {"choices": [1]}}}}
    found = [str(d) for d in differences(OLD, replace(OLD, parts=parts))]
    assert found == [
        "space.parameters.a.choices: was [1,2], is now [1,2,8]",
        'space.parameters.b: was absent, is now {"choices":[1]}',
    ]
    assert differences(OLD, OLD) == []
