"""Where the time goes: six phases and the device's view, per step and rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.names import clean
from autotune.analyze.profile import StepTime
from autotune.analyze.ranks import RankVerdict
from autotune.analyze.summary import ProfileSet, mean_step
from autotune.analyze.text.words import heading, milliseconds_and_share, table
from autotune.analyze.text.words import milliseconds as ms
from autotune.measure.records import PHASES

# More rows than this are summarised; the tables have all.
_MOST_ROWS = 12
_SHORT = {
    "data_loading": "loading",
    "forward_backward": "fwd+bwd",
    "optimizer": "optimizer",
    "post_processing": "post",
    "communication": "commun.",
    "scheduling": "scheduling",
}


@dataclass(frozen=True)
class Row:
    """One line of the breakdown."""

    label: str
    time: StepTime


def breakdown(profiles: ProfileSet, verdict: RankVerdict) -> Iterator[RenderableType]:
    """The phases where they are known, and what the device did."""
    rows = chosen_rows(profiles, verdict)
    if not rows:
        yield heading("Where the time goes")
        yield Text("No step was found: the share of each phase cannot be said.")
        return
    phased = [row for row in rows if row.time.phases_us is not None]
    if phased:
        yield heading("Where the time goes", "ms a step and share")
        yield table(["of step", "in all", *_SHORT.values()], [_phases(row) for row in phased])
        yield Text(
            "commun. is what compute does not hide; scheduling: the device waits for the host.",
            "dim",
        )
    yield heading("What the device does", "ms a step and share")
    yield table(_DEVICE, [_device(row) for row in rows])
    yield Text(
        "hidden: communication while computing; exposed: the rest of it, with any bubble (waiting "
        "for a pipeline stage); free: neither; preparing: before the first device task.",
        "dim",
    )


_DEVICE = ["of step", "computing", "exposed comm.", "free", "preparing", "hidden comm.", "bubble"]


def chosen_rows(profiles: ProfileSet, verdict: RankVerdict) -> list[Row]:
    """Every step of every rank; of many, the ranks' means; of many ranks, three of them."""
    pairs = list(zip(profiles.labels, profiles.profiles, strict=True))
    several = len(pairs) > 1
    if len(profiles.steps) <= _MOST_ROWS:
        return [
            Row(_label(label if several else "", step), step)
            for label, profile in pairs
            for step in profile.steps
        ] + _mean_row(profiles)
    means = {label: mean_step(profile.steps) for label, profile in pairs}
    known = {label: mean for label, mean in means.items() if mean is not None}
    if len(known) <= _MOST_ROWS:
        rows = [
            Row(f"{clean(label)}, mean of {len(profile.steps)}", known[label])
            for label, profile in pairs
            if label in known
        ]
        return rows if len(rows) == 1 else rows + _mean_row(profiles)
    ordered = sorted(verdict.works, key=lambda work: work.own_us)
    middle = ordered[len(ordered) // 2]
    return [
        Row(f"longest work, {clean(ordered[-1].label)}", known[ordered[-1].label]),
        Row(f"median work, {clean(middle.label)}", known[middle.label]),
        Row(f"least work, {clean(ordered[0].label)}", known[ordered[0].label]),
        *_mean_row(profiles),
    ]


def _label(rank: str, step: StepTime) -> str:
    """Such as `step 50`, or `rank 3: 50` where there are several ranks."""
    if step.step is None:
        return clean(rank)
    return f"{clean(rank)}: {step.step}" if rank else f"step {step.step}"


def _mean_row(profiles: ProfileSet) -> list[Row]:
    mean = mean_step(profiles.steps)
    return [Row("mean", mean)] if mean is not None and len(profiles.steps) > 1 else []


def _phases(row: Row) -> Sequence[str]:
    phases = row.time.phases_us or {}
    total = sum(phases.values())
    cells = [milliseconds_and_share(phases.get(name, 0.0), total) for name in PHASES]
    return [row.label, ms(row.time.total_us), *cells]


def _device(row: Row) -> Sequence[str]:
    time = row.time
    whole = time.computing_us + time.not_overlapped_us + time.free_us + time.preparing_us
    parts = [time.computing_us, time.not_overlapped_us, time.free_us, time.preparing_us]
    cells = [milliseconds_and_share(part, whole) if part else "" for part in parts]
    within = [ms(part) if part else "" for part in (time.overlapped_us, time.bubble_us)]
    return [row.label, *cells, *within]
