"""Whether a point does the same work as the baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from autotune.measure.outcome import Work
from autotune.measure.scored import Row

# Where the data do not repeat, runs of different length see different batches.
_TOKENS_TOLERANCE = 0.05
_LEAST_STRETCH = 4
_MOST_STRETCHES = 16
# A point that sees the samples in another order learns along another path: what it may be off
# grows with what has been learned, by this many times the tolerance.
_PATH = 5.0


def work_of(rows: Sequence[Row], scored: Sequence[Row], window_steps: int) -> Work:
    """The work of one pass over the data window.

    rows: all steps from the first on, for the losses. scored: the steps that count, which
    cover the window.
    """
    return Work(
        _per_window(scored, "samples", window_steps),
        _per_window(scored, "tokens", window_steps),
        _losses(rows, window_steps),
    )


def _per_window(rows: Sequence[Row], name: str, window_steps: int) -> int | None:
    by_place: dict[int, list[int]] = {}
    for row in rows:
        count = getattr(row[0], name)
        if count is None:
            return None
        by_place.setdefault(row[0].step % window_steps, []).append(count)
    return round(sum(statistics.fmean(counts) for counts in by_place.values()))


def _losses(rows: Sequence[Row], window_steps: int) -> tuple[float | None, ...]:
    """Mean loss of stretches of steps: whole passes over the window, at least four steps.

    None for a stretch in which a step has no finite loss.
    """
    length = window_steps * math.ceil(_LEAST_STRETCH / window_steps)
    losses = [_loss(row) for row in rows]
    means: list[float | None] = []
    for start in range(0, len(losses) - length + 1, length):
        stretch = [loss for loss in losses[start : start + length] if loss is not None]
        means.append(statistics.fmean(stretch) if len(stretch) == length else None)
    means = means[:_MOST_STRETCHES]
    return tuple(means) if any(mean is not None for mean in means) else ()


def _loss(row: Row) -> float | None:
    """Of the first rank that recorded a finite one: with pipelines the last alone has it."""
    losses = (step.loss for step in row)
    return next((loss for loss in losses if loss is not None and math.isfinite(loss)), None)


def other_work(work: Work, baseline: Work, window_steps: int) -> str | None:
    """How the counted work differs from the baseline's, None where it does not."""
    for name in ("samples", "tokens"):
        expected, done = getattr(baseline, name), getattr(work, name)
        if expected is None:
            continue
        if done is None:
            return f"recorded no {name}, though the baseline did, so its work cannot be checked"
        slack = _TOKENS_TOLERANCE if name == "tokens" and window_steps == 1 else 0.0
        if abs(done - expected) > slack * expected:
            return f"did other work: {done} {name} in the data window, the baseline {expected}"
    return None


def other_losses(work: Work, baseline: Work, tolerance: float) -> str | None:
    """How the losses differ from the baseline's beyond `tolerance`, None where they do not.

    Compared stretch by stretch, as far as both runs went: each may be off by `tolerance` as a
    share of the loss itself, and by five times that of what the baseline has learned so far.
    """
    pairs = zip(work.losses, baseline.losses, strict=False)
    both = [
        (number, found, expected)
        for number, (found, expected) in enumerate(pairs)
        if found is not None and expected is not None
    ]
    if not both and any(loss is not None for loss in baseline.losses):
        return "recorded no losses that can be compared with the baseline's"
    first = next((loss for loss in baseline.losses if loss is not None), 0.0)
    for number, found, expected in both:
        learned = abs(first - expected)
        allowed = tolerance * (abs(expected) + _PATH * learned)
        if abs(found - expected) > allowed:
            return (
                f"learns otherwise: mean loss {found:.4g} in stretch {number + 1} of the run, the "
                f"baseline {expected:.4g} +- {allowed:.2g}"
            )
    return None
