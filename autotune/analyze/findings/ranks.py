"""A slow rank, uneven work, a slow step: in words."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from autotune.analyze.advice import Advice
from autotune.analyze.ranks import RankVerdict, SlowRank, UnevenRanks
from autotune.analyze.summary import ProfileSet
from autotune.analyze.techniques import techniques

# What helps, by where most of the difference between ranks is.
_SLOW = {"computing": "slow_rank", "loading data": "data_loading", "the host": "slow_rank"}
_UNEVEN = {"computing": "waiting", "loading data": "data_loading", "the host": "late"}
_SLOW_STEP = 1.5
_FEWEST_STEPS = 3


def rank_findings(verdict: RankVerdict, profiles: ProfileSet) -> Iterator[Advice]:
    """The slow ranks, or that their work is uneven."""
    for slow in verdict.slow:
        yield Advice(
            "ranks",
            f"{_capital(slow.label)} is slow, and the others wait for it",
            slow_rank_evidence(slow),
            techniques(_SLOW[slow.cause], profiles.device),
            slow.cost_us / slow.step_us,
        )
    if verdict.uneven is not None:
        yield Advice(
            "ranks",
            "Ranks do unequal work, and all wait for the longest",
            uneven_evidence(verdict.uneven),
            techniques(_UNEVEN[verdict.uneven.cause], profiles.device),
            verdict.uneven.cost_us / verdict.uneven.step_us,
        )


def slow_rank_evidence(slow: SlowRank) -> str:
    """What the rank costs, and where its time goes."""
    return (
        f"its own work takes {slow.own_us / 1e3:.1f} ms a step, that of the others "
        f"{slow.others_us / 1e3:.1f} ms (median), most of the difference in {slow.cause}; the "
        f"step could be {slow.cost_us / 1e3:.1f} ms shorter ({slow.cost_us / slow.step_us:.0%})"
    )


def uneven_evidence(uneven: UnevenRanks) -> str:
    """How far the ranks are apart, and whether it is always the same one."""
    turns = {
        None: "",
        True: "; the longest rank is not the same in all steps, as with data of unequal length",
        False: f"; {uneven.slowest} is the longest in every step",
    }[uneven.changes]
    return (
        f"own work without communication from {uneven.fastest_us / 1e3:.1f} ms "
        f"({uneven.fastest}) to {uneven.slowest_us / 1e3:.1f} ms ({uneven.slowest}), mostly in "
        f"{uneven.cause}; equal work would make the step up to {uneven.cost_us / 1e3:.1f} ms "
        f"shorter ({uneven.cost_us / uneven.step_us:.0%}){turns}"
    )


def slow_step_findings(profiles: ProfileSet) -> Iterator[Advice]:
    """The longest step of a rank where it is far above the rank's median."""
    worst: tuple[float, str, int | None, float, float] | None = None
    for profile, label in zip(profiles.profiles, profiles.labels, strict=True):
        times = [step.total_us for step in profile.steps]
        if len(times) < _FEWEST_STEPS or (middle := median(times)) <= 0:
            continue
        longest = max(profile.steps, key=lambda step: step.total_us)
        ratio = longest.total_us / middle
        if ratio >= _SLOW_STEP and (worst is None or ratio > worst[0]):
            worst = (ratio, label, longest.step, longest.total_us, middle)
    if worst is None:
        return
    ratio, label, number, longest_us, middle = worst
    which = "One step" if number is None else f"Step {number}"
    yield Advice(
        "steps",
        f"{which} took {ratio:.1f} times as long as the others",
        f"{longest_us / 1e3:.1f} ms on {label}, where the median is {middle / 1e3:.1f} ms; the "
        "means shown here include it",
        techniques("slow_step", profiles.device),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
