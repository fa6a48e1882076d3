"""Lines of runs -> the steps that were printed, each once."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.measure.logs.entries import StepEntry
from autotune.measure.logs.printed import PrintedStep
from autotune.measure.logs.rates import Batch
from autotune.measure.logs.runs import Block, merge_runs, split_runs


@dataclass(frozen=True)
class SourcedEntry:
    """A line of a step, and whose log it is in."""

    source: int
    entry: StepEntry


def printed_steps(
    lines: Sequence[SourcedEntry], batch: Batch, first_step_counts_again: bool
) -> tuple[PrintedStep, ...]:
    """All steps whose time or rate was printed, by run and number."""
    streams: defaultdict[tuple[int, str | None, int], list[StepEntry]] = defaultdict(list)
    for line in lines:
        entry = line.entry
        streams[line.source, entry.label, entry.kind].append(entry)
    runs = merge_runs([split_runs(stream) for stream in streams.values()])
    return tuple(
        step
        for number, run in enumerate(runs)
        for step in _steps(number, run, batch, first_step_counts_again)
    )


def _steps(
    run: int, blocks: Mapping[int, Block], batch: Batch, first_step_counts_again: bool
) -> list[PrintedStep]:
    skipped = _skipped(blocks)
    timed = [step for step in sorted(blocks) if any(entry.is_timed for entry in blocks[step])]
    means = means_over(timed, first_step_counts_again)
    return [
        _step(step, run, blocks[step], batch, mean, step in skipped)
        for step, mean in zip(timed, means, strict=True)
    ]


def _step(
    step: int, run: int, block: Block, batch: Batch, mean_over: int | None, skipped: bool
) -> PrintedStep:
    timed = [entry for entry in block if entry.time_s is not None] or [
        entry for entry in block if entry.is_timed
    ]
    times = [_seconds(entry, batch) for entry in timed]
    return PrintedStep(
        step=step,
        run=run,
        time_s=max((time_s for time_s in times if time_s is not None), default=None),
        averaged_over=mean_over if any(entry.is_mean for entry in timed) else 1,
        loss=_mean(entry.loss for entry in block),
        grad_norm=_mean(entry.grad_norm for entry in block),
        samples=_largest(entry.samples for entry in block),
        tokens=_largest(entry.tokens for entry in block),
        skipped=skipped,
        profiled=any(entry.profiled for entry in block),
        phases_s=next((entry.phases_s for entry in block if entry.phases_s is not None), None),
    )


def means_over(steps: Sequence[int], first_step_counts_again: bool = False) -> list[int | None]:
    """Over how many steps the lines of these steps are means: as a rule the log interval.

    Lines may be missing, so a larger distance is none. The first line may come sooner, and of
    a single one it is not known unless it is that of the first step.
    """
    if not steps:
        return []
    distances = [later - earlier for earlier, later in pairwise(steps)]
    if first_step_counts_again and steps[0] == 1 and distances and distances[0] > 1:
        distances[0] += 1
    # A first step that is printed besides says little of the interval.
    usual = distances[1:] if steps[0] <= 1 and len(distances) > 1 else distances
    interval = _most_common(usual)
    first = 1 if steps[0] <= 1 else interval and min(interval, steps[0])
    return [first, *(min(distance, interval or distance) for distance in distances)]


def _most_common(numbers: Sequence[int]) -> int | None:
    counts = Counter(sorted(numbers)).most_common(1)
    return counts[0][0] if counts else None


def _skipped(blocks: Mapping[int, Block]) -> set[int]:
    """The steps up to which an update was skipped since the line before."""
    skipped, before = set(), 0
    for step in sorted(blocks):
        so_far = _largest(entry.skipped_so_far for entry in blocks[step])
        if any(entry.skipped for entry in blocks[step]) or (so_far or 0) > before:
            skipped.add(step)
        before = before if so_far is None else so_far
    return skipped


def _seconds(entry: StepEntry, batch: Batch) -> float | None:
    if entry.time_s is not None:
        return entry.time_s
    return None if entry.rate is None else entry.rate.seconds(batch)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(value == known[0] for value in known):
        return known[0]  # not rounded anew
    return math.fsum(known) / len(known)


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
