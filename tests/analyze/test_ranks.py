"""A slow rank or link is named when there is one, and only then."""

from __future__ import annotations

import random

import pytest

from autotune.analyze.links import shared_rank, slow_links
from autotune.analyze.profile import LinkTime
from autotune.analyze.ranks import judge_ranks
from autotune.analyze.summary import ProfileSet
from tests.analyze.made import job, phases, profile, step


def test_a_rank_that_computes_longer_is_named_with_what_it_costs() -> None:
    works = [[60e3 + 300 * rank] * 4 for rank in range(8)]
    works[5] = [78e3] * 4
    verdict = judge_ranks(job(works))
    (slow,) = verdict.slow
    assert (slow.label, slow.cause) == ("rank 5", "computing")
    # Free and preparing are 20 ms everywhere; the median of the other seven computes 60.9 ms.
    assert slow.own_us == pytest.approx(98e3)
    assert slow.cost_us == pytest.approx(78e3 - 60.9e3)
    assert verdict.uneven is None


def test_two_slow_ranks_are_both_named_the_slower_first() -> None:
    works = [[60e3]] * 6 + [[80e3], [90e3]]
    # Only the slowest waits least; the other one waits 10 ms for it, a tenth of the step.
    assert [slow.label for slow in judge_ranks(job(works)).slow] == ["rank 7"]
    works[6] = [89.5e3]
    assert [slow.label for slow in judge_ranks(job(works)).slow] == ["rank 7", "rank 6"]


def test_the_cause_is_where_the_difference_is() -> None:
    def ranks(**slow: float) -> ProfileSet:
        usual = {"free": 15e3, "exposed": 40e3}
        steps = [step(at, **usual) for at in range(3)]
        late = [
            step(at, free=45e3, exposed=10e3, phases_us=phases(**slow) if slow else None)
            for at in range(3)
        ]
        return ProfileSet((*(profile(rank, steps) for rank in range(5)), profile(5, late)))

    assert judge_ranks(ranks()).slow[0].cause == "the host"
    assert judge_ranks(ranks(data_loading=40e3)).slow[0].cause == "loading data"


# Rows of real step_trace_time.csv files: computing, not overlapped, free, preparing (us).
TWO_RANKS = [(8873.756, 101963.203, 25744.05, 17902.5), (8878.295, 96359.047, 26675.274, 20433.25)]
EIGHT_RANKS = [
    (80309.7, 683731.3, 990605.1, 0.0),
    (80435.7, 133386.0, 1488610.1, 0.0),
    (80335.8, 530279.2, 1110332.1, 0.0),
    (80077.3, 265574.7, 1366552.5, 0.0),
    (81662.2, 478477.4, 1130793.2, 0.0),
    (81367.6, 756374.9, 892836.9, 0.0),
    (81359.0, 244123.8, 1390633.0, 0.0),
    (81416.4, 539037.9, 1061577.1, 0.0),
]


def real(rows: list[tuple[float, float, float, float]]) -> ProfileSet:
    return ProfileSet(
        tuple(
            profile(rank, [step(50, computing, exposed, 0.0, free, preparing)])
            for rank, (computing, exposed, free, preparing) in enumerate(rows)
        )
    )


def test_no_alarm_on_two_ranks_that_are_alike() -> None:
    verdict = judge_ranks(real(TWO_RANKS))
    assert verdict.slow == ()
    assert verdict.uneven is None


def test_ranks_whose_hosts_differ_are_uneven_but_none_of_them_is_the_slow_one() -> None:
    verdict = judge_ranks(real(EIGHT_RANKS))
    assert verdict.slow == ()
    assert verdict.uneven is not None
    assert (verdict.uneven.slowest, verdict.uneven.fastest) == ("rank 1", "rank 5")
    assert verdict.uneven.cause == "the host"
    assert verdict.uneven.changes is None


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16, 64])
def test_chance_is_no_slow_rank(ranks: int) -> None:
    """Equal ranks with 2 % of noise: at most 4 alarms in 200 jobs, of one step or of four."""
    noise = random.Random(7)
    for steps in (1, 4):
        jobs = [
            job([[60e3 * noise.gauss(1, 0.02) for _ in range(steps)] for _ in range(ranks)])
            for _ in range(200)
        ]
        assert sum(1 for each in jobs if judge_ranks(each).slow) <= 4


def test_of_two_ranks_only_a_clearly_slow_one_is_named() -> None:
    assert judge_ranks(job([[60e3], [64e3]])).slow == ()
    assert [slow.label for slow in judge_ranks(job([[60e3], [80e3]])).slow] == ["rank 1"]


def test_when_the_longest_rank_takes_turns_it_is_the_data() -> None:
    works = [[90e3 if at == rank else 60e3 for at in range(4)] for rank in range(4)]
    verdict = judge_ranks(job(works))
    assert verdict.slow == ()
    assert verdict.uneven is not None
    assert verdict.uneven.changes is True
    assert verdict.uneven.cost_us == pytest.approx(30e3)


def test_one_slow_step_makes_no_slow_rank() -> None:
    works = [[60e3] * 6 for _ in range(8)]
    works[2] = [60e3] * 5 + [300e3]
    assert judge_ranks(job(works)).slow == ()


def test_a_few_ranks_that_agree_by_chance_prove_nothing() -> None:
    assert judge_ranks(job([[60e3], [60e3], [60e3], [64e3]])).slow == ()


def test_a_rank_that_waits_for_others_is_not_what_they_wait_for() -> None:
    """It computes longest but waits, too: its work overlaps with what the others wait for."""
    usual = [profile(rank, [step(1, 60e3, exposed=20e3)]) for rank in range(7)]
    longest = profile(7, [step(1, 80e3, exposed=40e3)])
    assert judge_ranks(ProfileSet((*usual, longest))).slow == ()


def test_ranks_are_compared_over_the_steps_that_they_share() -> None:
    # Rank 0 was profiled over a slow first step that the others do not have.
    first = profile(0, [step(1, 500e3), *(step(at, 60e3) for at in (2, 3, 4))])
    others = [profile(rank, [step(at, 60e3) for at in (2, 3, 4, 5)]) for rank in range(1, 6)]
    verdict = judge_ranks(ProfileSet((first, *others)))
    assert verdict.slow == ()
    assert {work.own_us for work in verdict.works} == {80e3}


def test_nothing_is_said_of_one_rank_or_of_ranks_without_steps() -> None:
    assert judge_ranks(job([[60e3]])).slow == ()
    assert judge_ranks(ProfileSet((profile(0), profile(1)))).works == ()
    idle = [profile(rank, [step(1, 0, 0, 0, 0, 0)]) for rank in range(6)]
    assert judge_ranks(ProfileSet(tuple(idle))).slow == ()


def links(bandwidth: dict[tuple[int, int], float], size: float = 60e6) -> list[LinkTime]:
    """All links of 8 ranks at 17 GB/s and a little more or less, but for those given."""
    return [
        LinkTime(
            source,
            target,
            "HCCS",
            size,
            size / 1e3 / bandwidth.get((source, target), 17 + (source - target) / 20),
        )
        for source in range(8)
        for target in range(8)
        if source != target
    ]


def test_a_slow_link_is_named_against_its_like() -> None:
    (slow,) = slow_links(links({(2, 5): 8.5}))
    assert (slow.link.source, slow.link.target) == (2, 5)
    assert slow.bandwidth_gb_per_s == pytest.approx(8.5)
    assert slow.peers_gb_per_s == pytest.approx(17, abs=0.1)
    assert slow_links(links({})) == ()


def test_links_of_another_transport_or_size_are_no_measure() -> None:
    alike = links({})
    network = [LinkTime(rank, rank + 8, "RDMA", 60e6, 60e6 / 1e3 / 3) for rank in range(8)]
    small = [LinkTime(rank, rank + 16, "HCCS", 2e6, 2e6 / 1e3 / 4) for rank in range(8)]
    latency = [LinkTime(30, 31 + at, "HCCS", 1e3, 100.0 if at == 0 else 2.0) for at in range(20)]
    own = [LinkTime(0, 0, "HCCS", 60e6, 60e6 / 1e3 / 5)]
    assert slow_links([*alike, *network, *small, *latency, *own]) == ()


def test_a_link_in_several_groups_is_judged_as_one() -> None:
    many = [
        LinkTime(k.source, k.target, k.transport, k.size_bytes, k.transit_us, group)
        for group in ("tp", "dp")
        for k in links({(0, 1): 6.0})
    ]
    (slow,) = slow_links(many)
    assert slow.link.size_bytes == pytest.approx(120e6)


def test_the_rank_that_all_slow_links_touch_is_named() -> None:
    of_rank_3 = slow_links(links({(3, to): 6.0 for to in range(8)} | {(0, 3): 6.0}))
    assert shared_rank(of_rank_3) == 3
    assert shared_rank(slow_links(links({(1, 2): 6.0, (4, 5): 6.0}))) is None


def test_links_without_time_or_traffic_are_passed_over() -> None:
    assert slow_links([]) == ()
    assert slow_links([LinkTime(0, rank, "HCCS", 60e6, 0.0) for rank in range(1, 8)]) == ()
