"""Ranks of one job against each other: the slow one, or uneven work.

In synchronous training all ranks take as long as the slowest: it waits least in collectives,
and the others wait for it. So ranks are compared by their own work, the time in which they
do not communicate, not by the length of their step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from autotune.analyze.profile import Profile, StepTime
from autotune.analyze.robust import distance, needed_distance
from autotune.analyze.summary import ProfileSet

# A share of the step below which nobody would act.
_WORTH_NAMING = 0.03
# Two or three ranks say nothing about how much equal ranks differ: only a clear case is named.
_WORTH_NAMING_AMONG_FEW = 0.10
_FEW = 3
# Equal ranks differ by about half a percent; less spread than that is chance.
_LEAST_SPREAD = 0.005
# Waiting as little as any other rank, but for so much of the step.
_WAITS_LEAST = 0.02
# In so many of the steps a slow rank is the slowest one; else it was the data's turn.
_MOST_STEPS = 2 / 3


@dataclass(frozen=True)
class RankWork:
    """A rank's step on average. own_us: not communicating = computing_us + loading_us + host_us.

    loading_us: waiting for data, 0 where it is not known apart. host_us: the device waits for
    the host. waiting_us: communication that compute does not hide, waiting included.
    by_step: own_us of each step, in the order of the steps that all ranks have.
    """

    label: str
    computing_us: float
    loading_us: float
    host_us: float
    waiting_us: float
    step_us: float
    by_step: tuple[float, ...]

    @property
    def own_us(self) -> float:
        """Time in which the rank does not communicate."""
        return self.computing_us + self.loading_us + self.host_us


@dataclass(frozen=True)
class SlowRank:
    """A rank for which the others wait.

    cost_us: what the step would gain at most if the rank were like the median of the others.
    cause: where most of the difference is: `computing`, `loading data` or `the host`.
    """

    label: str
    own_us: float
    others_us: float
    cost_us: float
    step_us: float
    cause: str


@dataclass(frozen=True)
class UnevenRanks:
    """No single rank is slow, but their work differs.

    cost_us: the slowest rank's own work above the median's, the mean over the steps.
    changes: the slowest rank is not the same in all steps; None with one step.
    """

    slowest: str
    fastest: str
    slowest_us: float
    fastest_us: float
    cost_us: float
    step_us: float
    cause: str
    changes: bool | None


@dataclass(frozen=True)
class RankVerdict:
    """works: by rank, in the order of the set. Without two comparable ranks all is empty."""

    works: tuple[RankWork, ...] = ()
    slow: tuple[SlowRank, ...] = ()
    uneven: UnevenRanks | None = None


def judge_ranks(profiles: ProfileSet) -> RankVerdict:
    """Names a rank only when it stands out from the others and costs a few percent of the step.

    With a pipeline, ranks differ by their stage; what is named then may be a slow stage.
    """
    works = rank_works(profiles)
    if len(works) < 2:
        return RankVerdict(works)
    slow = tuple(
        found
        for position in range(len(works))
        if (found := _slow(works[position], [*works[:position], *works[position + 1 :]]))
    )
    return RankVerdict(
        works,
        tuple(sorted(slow, key=lambda s: -s.cost_us)),
        None if slow else _uneven(works),
    )


def rank_works(profiles: ProfileSet) -> tuple[RankWork, ...]:
    """Each rank over the steps that all of them have, or over its own where none are shared."""
    timed = [
        (p, label) for p, label in zip(profiles.profiles, profiles.labels, strict=True) if p.steps
    ]
    shared = _shared_steps([profile for profile, _ in timed])
    works = []
    for profile, label in timed:
        by_number = {step.step: step for step in profile.steps}
        steps = [by_number[number] for number in shared] or list(profile.steps)
        works.append(_work(label, steps, aligned=bool(shared)))
    return tuple(works)


def _shared_steps(profiles: Sequence[Profile]) -> list[int | None]:
    """The steps that every rank has, in order; none where numbers are absent or repeat."""
    numbers = [[step.step for step in profile.steps] for profile in profiles]
    if any(len(set(each)) != len(each) for each in numbers):
        return []
    shared = [n for n in numbers[0] if all(n in each for each in numbers)] if numbers else []
    return [n for n in shared if n is not None]


def _work(label: str, steps: Sequence[StepTime], *, aligned: bool) -> RankWork:
    loading = [min(_loading_us(step), step.free_us + step.preparing_us) for step in steps]
    host = [s.free_us + s.preparing_us - waited for s, waited in zip(steps, loading, strict=True)]
    return RankWork(
        label=label,
        computing_us=fmean(step.computing_us for step in steps),
        loading_us=fmean(loading),
        host_us=fmean(host),
        waiting_us=fmean(step.not_overlapped_us for step in steps),
        step_us=fmean(step.total_us for step in steps),
        by_step=tuple(map(own_work_us, steps)) if aligned else (),
    )


def own_work_us(step: StepTime) -> float:
    """The part of a step in which its rank does not communicate."""
    return step.computing_us + step.free_us + step.preparing_us


def _loading_us(step: StepTime) -> float:
    return (step.phases_us or {}).get("data_loading", 0.0)


def _slow(work: RankWork, others: Sequence[RankWork]) -> SlowRank | None:
    owns = [other.own_us for other in others]
    step_us = median([work.step_us, *(other.step_us for other in others)])
    middle = median(owns)
    cost_us = work.own_us - middle
    few = len(others) + 1 <= _FEW
    if step_us <= 0 or cost_us < step_us * (_WORTH_NAMING_AMONG_FEW if few else _WORTH_NAMING):
        return None
    if not few:
        far = distance(work.own_us, owns, floor=_LEAST_SPREAD * middle or step_us)
        if far < needed_distance(len(others) + 1):
            return None
    if work.waiting_us > min(o.waiting_us for o in others) + _WAITS_LEAST * step_us:
        return None
    if not _is_slowest_in_most_steps(work, others):
        return None
    return SlowRank(work.label, work.own_us, middle, cost_us, step_us, _cause(work, others))


def _is_slowest_in_most_steps(work: RankWork, others: Sequence[RankWork]) -> bool:
    """Above the others' median in most steps; another slow rank may be slower still."""
    if not work.by_step:
        return True
    above = [
        own > median(other.by_step[at] for other in others) for at, own in enumerate(work.by_step)
    ]
    return sum(above) >= _MOST_STEPS * len(above)


def _cause(work: RankWork, others: Sequence[RankWork]) -> str:
    excess: Mapping[str, float] = {
        "computing": work.computing_us - median(o.computing_us for o in others),
        "loading data": work.loading_us - median(o.loading_us for o in others),
        "the host": work.host_us - median(o.host_us for o in others),
    }
    return max(excess, key=lambda name: excess[name])


def _uneven(works: Sequence[RankWork]) -> UnevenRanks | None:
    by_step = list(zip(*(work.by_step for work in works), strict=True))
    by_step = by_step or [tuple(work.own_us for work in works)]
    step_us = median(work.step_us for work in works)
    cost_us = fmean(max(owns) - median(owns) for owns in by_step)
    least = _WORTH_NAMING_AMONG_FEW if len(works) <= _FEW else _WORTH_NAMING
    if step_us <= 0 or cost_us < least * step_us:
        return None
    slowest = Counter(owns.index(max(owns)) for owns in by_step).most_common(1)[0]
    high, low = works[slowest[0]], min(works, key=lambda w: w.own_us)
    others = [work for work in works if work is not high]
    return UnevenRanks(
        slowest=high.label,
        fastest=low.label,
        slowest_us=high.own_us,
        fastest_us=low.own_us,
        cost_us=cost_us,
        step_us=step_us,
        cause=_cause(high, others),
        changes=slowest[1] < len(by_step) if len(by_step) > 1 else None,
    )
