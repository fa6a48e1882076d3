"""Two profiles, or two sets, against each other: what became longer, shorter, new or gone.

Times, counts and sizes are those of one step of one rank on average, so captures of different
length compare. Ranks are matched by number; where none is in both, all stand for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.analyze.profile import CollectiveTime, OperatorTime, Profile, StepTime
from autotune.analyze.ranks import own_work_us
from autotune.analyze.summary import (
    HOST,
    ProfileSet,
    mean_step,
    own_us,
    sum_collectives,
    sum_operators,
)
from autotune.measure.records import PHASES


@dataclass(frozen=True)
class Difference:
    """One figure of both. base, other: None where it is not there. base_count: of calls.

    kind: `step`, `rank`, `phase`, `device`, `operator`, `communication`, `memory`. unit: `us` or
    `bytes`. where: of an operator; the group of a collective.
    """

    kind: str
    name: str
    base: float | None
    other: float | None
    unit: str = "us"
    where: str = ""
    base_count: float | None = None
    other_count: float | None = None

    @property
    def absolute(self) -> float:
        """How much more `other` has; what is not there is 0."""
        return (self.other or 0.0) - (self.base or 0.0)

    @property
    def relative(self) -> float | None:
        """The change as a share of base; None where there is no base."""
        return self.absolute / self.base if self.base else None


@dataclass(frozen=True)
class Comparison:
    """base is what `other` is compared with. ranks: matched by number, None if none could be.

    by_rank: each rank's own work, without communication. It, operators and communication come
    with the largest difference first.
    """

    base_name: str
    other_name: str
    ranks: tuple[int, ...] | None
    step: Difference | None
    by_rank: tuple[Difference, ...] = ()
    phases: tuple[Difference, ...] = ()
    device: tuple[Difference, ...] = ()
    operators: tuple[Difference, ...] = ()
    communication: tuple[Difference, ...] = ()
    memory: tuple[Difference, ...] = ()

    @property
    def all(self) -> tuple[Difference, ...]:
        """Every difference, in the order in which they are read."""
        first = () if self.step is None else (self.step,)
        rest = (self.operators, self.communication, self.memory)
        steps = (first, self.by_rank, self.phases, self.device)
        return tuple(difference for part in (*steps, *rest) for difference in part)


def compare(base: ProfileSet, other: ProfileSet) -> Comparison:
    """What `other` does differently from `base`."""
    ranks = _shared_ranks(base, other)
    base_part, other_part = _of_ranks(base, ranks), _of_ranks(other, ranks)
    base_step, other_step = mean_step(base_part.steps), mean_step(other_part.steps)
    both = (base_step, other_step) if base_step and other_step else None
    same = base.name == other.name
    return Comparison(
        base_name=str(base.source) if same else base.name,
        other_name=str(other.source) if same else other.name,
        ranks=ranks,
        step=Difference("step", "step", both[0].total_us, both[1].total_us) if both else None,
        by_rank=_by_size(_by_rank(base_part, other_part)) if ranks else (),
        phases=tuple(_phases(*both)) if both else (),
        device=tuple(_device(*both)) if both else (),
        operators=_by_size(_operators(base_part, other_part)),
        communication=_by_size(_communication(base_part, other_part)),
        memory=tuple(_memory(base_part, other_part)),
    )


def _shared_ranks(base: ProfileSet, other: ProfileSet) -> tuple[int, ...] | None:
    shared = {p.rank for p in base.profiles} & {p.rank for p in other.profiles}
    return tuple(sorted(rank for rank in shared if rank is not None)) or None


def _of_ranks(profiles: ProfileSet, ranks: tuple[int, ...] | None) -> ProfileSet:
    if ranks is None:
        return profiles
    return ProfileSet(tuple(p for p in profiles.profiles if p.rank in ranks))


def _by_rank(base: ProfileSet, other: ProfileSet) -> Iterator[Difference]:
    after = {profile.rank: mean_step(profile.steps) for profile in other.profiles}
    for profile in base.profiles:
        old, new = mean_step(profile.steps), after[profile.rank]
        if old is not None and new is not None:
            yield Difference("rank", profile.name, own_work_us(old), own_work_us(new))


def _phases(base: StepTime, other: StepTime) -> Iterator[Difference]:
    if base.phases_us is None or other.phases_us is None:
        return
    for name in PHASES:
        yield Difference("phase", name, base.phases_us.get(name), other.phases_us.get(name))


_DEVICE_VIEW: Mapping[str, Callable[[StepTime], float]] = {
    "computing": lambda step: step.computing_us,
    "exposed communication": lambda step: step.not_overlapped_us,
    "hidden communication": lambda step: step.overlapped_us,
    "free": lambda step: step.free_us,
    "bubble": lambda step: step.bubble_us,
    "preparing": lambda step: step.preparing_us,
}


def _device(base: StepTime, other: StepTime) -> Iterator[Difference]:
    for name, figure in _DEVICE_VIEW.items():
        yield Difference("device", name, figure(base), figure(other))


def _operators(base: ProfileSet, other: ProfileSet) -> Iterator[Difference]:
    def times(profiles: ProfileSet) -> dict[tuple[str, str], OperatorTime]:
        every = sum_operators(o for p in profiles.profiles for o in p.operators)
        # Kernels first: the host's view of an operator holds what it waited for, too.
        return {(o.name, o.where): o for o in sorted(every, key=lambda o: o.where == HOST)}

    before, after = times(base), times(other)
    base_steps, other_steps = base.steps_with("operators"), other.steps_with("operators")
    for name, where in dict.fromkeys([*before, *after]):
        old, new = before.get((name, where)), after.get((name, where))
        yield Difference(
            "operator",
            name,
            None if old is None else own_us(old) / base_steps,
            None if new is None else own_us(new) / other_steps,
            where=where,
            base_count=None if old is None else old.count / base_steps,
            other_count=None if new is None else new.count / other_steps,
        )


def _communication(base: ProfileSet, other: ProfileSet) -> Iterator[Difference]:
    """By operation: the names of groups are other ones in every run."""

    def times(profiles: ProfileSet) -> dict[str, list[CollectiveTime]]:
        by_operation: dict[str, list[CollectiveTime]] = {}
        for each in sum_collectives(c for p in profiles.profiles for c in p.collectives):
            by_operation.setdefault(each.operation, []).append(each)
        return by_operation

    before, after = times(base), times(other)
    for operation in dict.fromkeys([*before, *after]):
        old, new = before.get(operation), after.get(operation)
        yield Difference(
            "communication",
            operation,
            _per_step(old, base, lambda c: c.elapsed_us),
            _per_step(new, other, lambda c: c.elapsed_us),
            base_count=_per_step(old, base, lambda c: c.count),
            other_count=_per_step(new, other, lambda c: c.count),
        )


def _per_step(
    calls: Sequence[CollectiveTime] | None,
    profiles: ProfileSet,
    figure: Callable[[CollectiveTime], float],
) -> float | None:
    steps = profiles.steps_with("collectives")
    return None if calls is None else sum(map(figure, calls)) / steps


def _memory(base: ProfileSet, other: ProfileSet) -> Iterator[Difference]:
    before, after = _peaks(base.profiles), _peaks(other.profiles)
    for component in dict.fromkeys([*before, *after]):
        yield Difference(
            "memory", component, before.get(component), after.get(component), unit="bytes"
        )


def _peaks(profiles: Iterable[Profile]) -> dict[str, float]:
    """The largest figure of each component over the ranks."""
    peaks: dict[str, float] = {}
    for profile in profiles:
        for component, size in (profile.memory.peaks_bytes if profile.memory else {}).items():
            peaks[component] = max(peaks.get(component, 0.0), size)
    return peaks


def _by_size(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    return tuple(sorted(differences, key=lambda d: -abs(d.absolute)))
