"""Lines that tell of steps -> runs of the program.

A step that is printed twice was printed by two ranks, or in two runs. Whose log a line is in
and what it begins with tell ranks apart. Where they do not, ranks agree in the loss and, since
they wait for each other, in the time; or they repeat step after step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from autotune.measure.logs.entries import StepEntry

Block = list[StepEntry]
"""Lines of one step."""

Run = list[Block]
"""The steps of one run, in their order."""

# Of the longer time to the shorter, between ranks; closer where no loss says that they are.
_LIKE_TIMES = 1.25
_LIKE_TIMES_ALONE = 1.1


def split_runs(stream: Sequence[StepEntry]) -> list[Run]:
    """The runs in lines of one kind that begin alike and are in one log."""
    runs: list[Run] = []
    for entry in stream:
        run = runs[-1] if runs else []
        if run and entry.step == run[-1][0].step:
            run[-1].append(entry)
        elif run and entry.step > run[-1][0].step:
            run.append([entry])
        elif len(run) > 1 and entry.step == run[-2][0].step and _is_late(entry, run):
            run[-2].append(entry)
        else:
            runs.append([[entry]])
    return [part for run in runs for part in _split_at_restarts(run)]


def merge_runs(runs_of_streams: Sequence[list[Run]]) -> list[dict[int, Block]]:
    """What all streams tell of each run, by step. All began with the first run."""
    merged: list[dict[int, Block]] = []
    for runs in runs_of_streams:
        merged.extend({} for _ in range(len(runs) - len(merged)))
        for steps, run in zip(merged, runs, strict=False):
            for block in run:
                steps.setdefault(block[0].step, []).extend(block)
    return merged


def _is_late(entry: StepEntry, run: Run) -> bool:
    """Whether a rank prints the last step but one when another has printed the last."""
    return _are_alike(entry, run[-2][0]) or _is_by_ranks(run[:-1])


def _split_at_restarts(run: Run) -> list[Run]:
    """Steps that are printed again by no other rank begin another run."""
    if _is_by_ranks(run):
        return [run]
    runs: list[Run] = [[]]
    for entry in (entry for block in run for entry in block):
        last = runs[-1][-1] if runs[-1] else None
        if last is None or last[0].step != entry.step:
            runs[-1].append([entry])
        elif _are_alike(last[0], entry):
            last.append(entry)
        else:
            runs.append([[entry]])
    return runs


def _is_by_ranks(run: Run) -> bool:
    """Whether most of two steps or more were printed several times."""
    repeated = sum(len(block) > 1 for block in run)
    return repeated > 1 and 2 * repeated > len(run)


def _are_alike(one: StepEntry, other: StepEntry) -> bool:
    """Whether two ranks may have printed these of one step."""
    pairs = ((one.loss, other.loss), (one.grad_norm, other.grad_norm))
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in known):
        return False
    speeds = (_speed(one), _speed(other))
    if speeds[0] is None or speeds[1] is None:
        return True
    fast, slow = max(speeds[0], speeds[1]), min(speeds[0], speeds[1])
    return fast <= slow * (_LIKE_TIMES if known else _LIKE_TIMES_ALONE)


def _speed(entry: StepEntry) -> float | None:
    if entry.time_s is not None:
        return 1 / entry.time_s
    return None if entry.rate is None else entry.rate.per_s
