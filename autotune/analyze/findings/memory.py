"""What the peak of memory is made of: the framework's allocator, its holes, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autotune.analyze.advice import Advice
from autotune.analyze.names import kernel
from autotune.analyze.profile import MemoryHolder, MemoryUse, Profile
from autotune.analyze.summary import ProfileSet
from autotune.analyze.techniques import techniques
from autotune.config.quantities import format_bytes

# torch_npu's names: what torch's allocator counts, and what the process has on the device.
ALLOCATOR = "PTA"
PROCESS = "APP"
_OUTSIDE = 0.20
_HOLES = 0.25
_ONE_HOLDER = 0.25
_LEAST_BYTES = 256 << 20


@dataclass(frozen=True)
class ComponentPeak:
    """The peaks of one component; None where it does not say."""

    component: str
    allocated_bytes: float | None
    reserved_bytes: float | None

    @property
    def bytes(self) -> float:
        """The larger one."""
        return max(self.allocated_bytes or 0.0, self.reserved_bytes or 0.0)


def component_peaks(memory: MemoryUse) -> tuple[ComponentPeak, ...]:
    """Each component's peak of what was allocated and of what was reserved, largest first."""
    allocated: dict[str, float] = {}
    reserved: dict[str, float] = {}
    for point in memory.points:
        name = point.component
        allocated[name] = max(allocated.get(name, 0.0), point.allocated_bytes)
        if point.reserved_bytes is not None:
            reserved[name] = max(reserved.get(name, 0.0), point.reserved_bytes)
    peaks = [
        _peak(name, memory.peaks_bytes, allocated.get(name), reserved.get(name))
        for name in dict.fromkeys([*memory.peaks_bytes, *allocated])
    ]
    return tuple(sorted(peaks, key=lambda p: -p.bytes))


def _peak(
    name: str, peaks: Mapping[str, float], allocated: float | None, reserved: float | None
) -> ComponentPeak:
    """What only the peaks know is what was reserved: that is the larger figure."""
    known = peaks.get(name)
    if known is not None and known > max(allocated or 0.0, reserved or 0.0):
        reserved = known
    # A component without a figure of its own, as the process has none, writes 0 or repeats.
    return ComponentPeak(name, None if allocated == reserved else allocated or None, reserved)


@dataclass(frozen=True)
class Held:
    """What one operator's allocations hold together."""

    by: str
    count: int
    size_bytes: float


def held_by(holders: Iterable[MemoryHolder]) -> tuple[Held, ...]:
    """The holders by who allocated them, the most first."""
    sums: dict[str, list[float]] = {}
    for holder in holders:
        sums.setdefault(holder.by, []).append(holder.size_bytes)
    held = [Held(by, len(sizes), sum(sizes)) for by, sizes in sums.items()]
    return tuple(sorted(held, key=lambda each: -each.size_bytes))


def memory_findings(profiles: ProfileSet) -> Iterator[Advice]:
    """About the rank with the largest peak: held outside the allocator, holes, one holder."""
    held = [(p, label) for p, label in zip(profiles.profiles, profiles.labels, strict=True)]
    with_memory = [(p.memory, p, label) for p, label in held if p.memory is not None]
    if not with_memory:
        return
    memory, profile, label = max(
        with_memory, key=lambda each: max(each[0].peaks_bytes.values(), default=0.0)
    )
    peaks = {peak.component: peak for peak in component_peaks(memory)}
    yield from _outside(peaks, label, profile)
    yield from _holes(peaks, label, profile)
    yield from _holder(memory, label, profile)


def _outside(peaks: Mapping[str, ComponentPeak], label: str, profile: Profile) -> Iterator[Advice]:
    process, allocator = peaks.get(PROCESS), peaks.get(ALLOCATOR)
    if process is None or allocator is None:
        return
    outside = process.bytes - allocator.bytes
    if outside >= max(_OUTSIDE * process.bytes, _LEAST_BYTES):
        yield Advice(
            "memory",
            "Much memory is held outside torch's allocator",
            f"{format_bytes(outside)} of {format_bytes(process.bytes)} on {label}: buffers of "
            "the communication library, workspaces and the runtime; the limit counts them too",
            techniques("outside", profile.device),
        )


def _holes(peaks: Mapping[str, ComponentPeak], label: str, profile: Profile) -> Iterator[Advice]:
    for peak in peaks.values():
        if peak.component == PROCESS or not peak.allocated_bytes or not peak.reserved_bytes:
            continue
        holes = peak.reserved_bytes - peak.allocated_bytes
        if holes >= max(_HOLES * peak.reserved_bytes, _LEAST_BYTES):
            yield Advice(
                "memory",
                "The allocator reserved much more than was ever allocated",
                f"{format_bytes(holes)} of {format_bytes(peak.reserved_bytes)} reserved "
                f"({peak.component}, {label}) were never in use at once",
                techniques("fragmentation", profile.device),
            )
            return


def _holder(memory: MemoryUse, label: str, profile: Profile) -> Iterator[Advice]:
    peak = max(memory.peaks_bytes.values(), default=0.0)
    # What was there before the profile began has no one who asked for it.
    held = held_by([holder for holder in memory.holders if holder.allocated_at_us is not None])
    if not held or held[0].size_bytes < max(_ONE_HOLDER * peak, _LEAST_BYTES):
        return
    first = held[0]
    yield Advice(
        "memory",
        f"What {kernel(first.by, 40)} allocated holds much of the peak",
        f"{format_bytes(first.size_bytes)} of {format_bytes(peak)} in {first.count} allocations "
        f"on {label}",
        techniques("memory", profile.device),
    )
