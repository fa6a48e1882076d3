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


def _losses(rows: Sequence[Row], window_steps: int) -> tuple[float, ...]:
    """Mean loss of stretches of steps: whole passes over the window, at least four steps."""
    length = window_steps * math.ceil(_LEAST_STRETCH / window_steps)
    losses = [row[0].loss for row in rows]
    means = []
    for start in range(0, len(losses) - length + 1, length):
        stretch = [loss for loss in losses[start : start + length] if loss is not None]
        if len(stretch) < length or not all(map(math.isfinite, stretch)):
            break
        means.append(statistics.fmean(stretch))
    return tuple(means[:_MOST_STRETCHES])


def other_work(work: Work, baseline: Work, window_steps: int) -> str | None:
    """How the counted work differs from the baseline's, None where it does not."""
    for name in ("samples", "tokens"):
        expected, done = getattr(baseline, name), getattr(work, name)
        if expected is None or done is None:
            continue
        slack = _TOKENS_TOLERANCE if name == "tokens" and window_steps == 1 else 0.0
        if abs(done - expected) > slack * expected:
            return f"did other work: {done} {name} in the data window, the baseline {expected}"
    return None


def other_losses(work: Work, baseline: Work, tolerance: float) -> str | None:
    """How the losses differ from the baseline's beyond `tolerance`, None where they do not.

    Compared stretch by stretch, as far as both runs went: each may be off by `tolerance` as a
    share of the loss itself, and by five times that of what the baseline has learned so far.
    """
    for number, (found, expected) in enumerate(zip(work.losses, baseline.losses, strict=False)):
        learned = abs(baseline.losses[0] - expected)
        allowed = tolerance * (abs(expected) + _PATH * learned)
        if abs(found - expected) > allowed:
            return (
                f"learns otherwise: mean loss {found:.4g} in stretch {number + 1} of the run, the "
                f"baseline {expected:.4g} +- {allowed:.2g}"
            )
    return None
