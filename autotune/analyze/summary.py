"""Several profiles, steps, calls: what belongs together, sums and means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from autotune.analyze.profile import CollectiveTime, OperatorTime, Profile, StepTime

HOST = "host"


@dataclass(frozen=True)
class ProfileSet:
    """The profiles of one capture: each of another rank of the same job."""

    profiles: tuple[Profile, ...]

    @property
    def name(self) -> str:
        """The folder or file that a person would know it by."""
        return self.source.name or str(self.source)

    @property
    def source(self) -> Path:
        """The profile, or the folder that holds all of them."""
        sources = {str(profile.source) for profile in self.profiles}
        if len(sources) == 1:
            return self.profiles[0].source
        return Path(os.path.commonpath([Path(source).parent for source in sources]))

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each profile, none twice."""
        names = [profile.name for profile in self.profiles]
        if len(set(names)) == len(names):
            return tuple(names)
        return tuple(
            f"{name} ({p.source.name})" for name, p in zip(names, self.profiles, strict=True)
        )

    @property
    def device(self) -> str:
        """`npu`, `cuda` or `cpu`."""
        return self.profiles[0].device

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """All steps of all ranks."""
        return tuple(step for profile in self.profiles for step in profile.steps)

    @property
    def unseen_ranks(self) -> int:
        """How many ranks there are at least that were not profiled: links lead to them."""
        profiled = {profile.rank for profile in self.profiles}
        links = [link for profile in self.profiles for link in profile.links]
        return len({rank for link in links for rank in (link.source, link.target)} - profiled)

    def steps_with(self, kind: Literal["operators", "collectives"]) -> int:
        """In how many steps of ranks such totals were collected; unmarked ones count as one."""
        return sum(max(len(p.steps), 1) for p in self.profiles if getattr(p, kind)) or 1


def profile_sets(profiles: Iterable[Profile]) -> tuple[ProfileSet, ...]:
    """Profiles by capture: a rank occurs once in a set, and an unknown rank is one by itself.

    A rank that occurs again in a folder is a later capture. Several folders are one set where
    they hold the same steps of other ranks, as the nodes of a job do.
    """
    sets: list[list[Profile]] = []
    alone: list[list[Profile]] = []
    for profile in sorted(profiles, key=_by_source):
        if profile.rank is None:
            alone.append([profile])
            continue
        for members in sets:
            if _fits(profile, members):
                members.append(profile)
                break
        else:
            sets.append([profile])
    return tuple(
        ProfileSet(tuple(sorted(members, key=lambda p: -1 if p.rank is None else p.rank)))
        for members in (*sets, *alone)
    )


def _by_source(profile: Profile) -> tuple[str, str, int]:
    rank = -1 if profile.rank is None else profile.rank
    return str(profile.source.parent), str(profile.source), rank


def _fits(profile: Profile, members: Sequence[Profile]) -> bool:
    first = members[0]
    together = profile.source.parent == first.source.parent or _numbers(profile) == _numbers(first)
    return together and all(m.rank != profile.rank and m.kind is profile.kind for m in members)


def _numbers(profile: Profile) -> set[int | None]:
    return {step.step for step in profile.steps}


def mean_step(steps: Sequence[StepTime]) -> StepTime | None:
    """The mean of each figure; what one of the steps does not know is left out."""
    if not steps:
        return None
    on_host = any(step.host_us is not None for step in steps)
    phases = [step.phases_us for step in steps if step.phases_us is not None]
    return StepTime(
        step=steps[0].step if len(steps) == 1 else None,
        computing_us=fmean(step.computing_us for step in steps),
        not_overlapped_us=fmean(step.not_overlapped_us for step in steps),
        overlapped_us=fmean(step.overlapped_us for step in steps),
        communication_us=fmean(step.communication_us for step in steps),
        free_us=fmean(step.free_us for step in steps),
        stage_us=fmean(step.stage_us for step in steps),
        bubble_us=fmean(step.bubble_us for step in steps),
        preparing_us=fmean(step.preparing_us for step in steps),
        # So that the mean's length is the mean of the lengths.
        host_us=fmean(step.total_us for step in steps) if on_host else None,
        phases_us=_mean_phases(phases) if len(phases) == len(steps) else None,
    )


def _mean_phases(phases: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(each.get(name, 0.0) for each in phases) for name in phases[0]}


def sum_collectives(collectives: Iterable[CollectiveTime]) -> tuple[CollectiveTime, ...]:
    """One value an operation and group, the longest first.

    A figure that one of the calls lacks is None: half a sum would make a wrong share.
    """
    groups: dict[tuple[str, str], list[CollectiveTime]] = {}
    for collective in collectives:
        groups.setdefault((collective.operation, collective.group), []).append(collective)
    sums = [add_collectives(members) for members in groups.values()]
    return tuple(sorted(sums, key=lambda c: -c.elapsed_us))


def add_collectives(members: Sequence[CollectiveTime]) -> CollectiveTime:
    """The sum of calls; operation and group are those of the first."""
    return replace(
        members[0],
        step=None,
        count=sum(c.count for c in members),
        elapsed_us=sum(c.elapsed_us for c in members),
        transit_us=_sum_of_all([c.transit_us for c in members]),
        wait_us=_sum_of_all([c.wait_us for c in members]),
        synchronization_us=_sum_of_all([c.synchronization_us for c in members]),
        idle_us=_sum_of_all([c.idle_us for c in members]),
        size_bytes=_sum_of_all([c.size_bytes for c in members]),
        overlapped_us=_sum_of_all([c.overlapped_us for c in members]),
    )


def sum_operators(operators: Iterable[OperatorTime]) -> tuple[OperatorTime, ...]:
    """One value a name and place, the one that took longest by itself first."""
    groups: dict[tuple[str, str], list[OperatorTime]] = {}
    for operator in operators:
        groups.setdefault((operator.name, operator.where), []).append(operator)
    sums = [_add_operators(members) for members in groups.values()]
    return tuple(sorted(sums, key=lambda o: -own_us(o)))


def _add_operators(members: Sequence[OperatorTime]) -> OperatorTime:
    longest = [o.longest_us for o in members if o.longest_us is not None]
    return replace(
        members[0],
        count=sum(o.count for o in members),
        total_us=sum(o.total_us for o in members),
        self_us=_sum_of_all([o.self_us for o in members]),
        longest_us=max(longest, default=None),
    )


def own_us(operator: OperatorTime) -> float:
    """The time that adds up over operators: without what an operator called."""
    return operator.total_us if operator.self_us is None else operator.self_us


def _sum_of_all(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def peak_bytes(profile: Profile) -> float | None:
    """The largest figure of all components of the device's memory."""
    return (
        None if profile.memory is None else max(profile.memory.peaks_bytes.values(), default=None)
    )
