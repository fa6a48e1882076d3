"""Whether communication is traffic, waiting or many small messages; and slow links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autotune.analyze.advice import Advice
from autotune.analyze.links import shared_rank, slow_links
from autotune.analyze.profile import CollectiveTime, StepTime
from autotune.analyze.summary import ProfileSet, add_collectives, sum_collectives
from autotune.analyze.techniques import techniques
from autotune.config.quantities import format_bytes

# Less of the time moving data than this: faster links or less traffic would not help.
_MOVES_LITTLE = 0.30
_SMALL_MESSAGE_BYTES = 1e6
_MANY_A_STEP = 20
_WORTH_NAMING = 0.05


def explain_communication(advice: Advice, profiles: ProfileSet, step: StepTime) -> Advice:
    """The advice on communication with what the collectives say: traffic or waiting."""
    evidence = advice.evidence
    if step.communication_us > 0:
        hidden = step.overlapped_us / step.communication_us
        evidence += f"; {hidden:.0%} of all communication is hidden behind compute"
    collectives = [c for profile in profiles.profiles for c in profile.collectives]
    total = add_collectives(collectives) if collectives else None
    if total is None or total.transit_us is None or not total.elapsed_us:
        return replace(advice, evidence=evidence)
    evidence += f"; {_composition(total, profiles.steps_with('collectives'))}"
    if total.transit_us >= _MOVES_LITTLE * total.elapsed_us:
        return replace(advice, evidence=evidence)
    late = (total.idle_us or 0.0) > (total.wait_us or 0.0)
    unseen = profiles.unseen_ranks or len(profiles.profiles) == 1
    ways = techniques("late" if late else "waiting", profiles.device)
    return Advice(
        "waiting",
        "Collectives take long, but little of that time moves data",
        evidence,
        (*techniques("one_rank"), *ways) if unseen else ways,
        advice.share,
    )


def _composition(total: CollectiveTime, steps: int) -> str:
    """Such as `of 106.0 ms a step in collectives 3.7 ms move data, 5.9 ms wait for ranks`."""
    parts = [
        f"{value / steps / 1e3:.1f} ms {does}"
        for value, does in (
            (total.transit_us, "move data"),
            (total.wait_us, "wait for other ranks"),
            (total.idle_us, "do neither (launched late, or others came late)"),
        )
        if value is not None
    ]
    return f"of {total.elapsed_us / steps / 1e3:.1f} ms a step in collectives {', '.join(parts)}"


def small_messages(profiles: ProfileSet, step_us: float) -> Iterator[Advice]:
    """Operations that send many small messages: latency, not bandwidth, is paid."""
    collectives = [c for profile in profiles.profiles for c in profile.collectives]
    steps = profiles.steps_with("collectives")
    for total in sum_collectives(collectives):
        calls = total.count / steps
        share = total.elapsed_us / steps / step_us if step_us else 0.0
        size = total.size_bytes / total.count if total.size_bytes and total.count else None
        if size is None or size >= _SMALL_MESSAGE_BYTES or calls < _MANY_A_STEP:
            continue
        if share >= _WORTH_NAMING:
            yield Advice(
                "small_messages",
                f"{total.operation} sends many small messages",
                f"{calls:.0f} calls a step of {format_bytes(size)} on average, in group "
                f"{total.group}: {share:.0%} of the step",
                techniques("small_messages", profiles.device),
                share,
            )


def link_findings(profiles: ProfileSet) -> Iterator[Advice]:
    """The slow link, or the rank that all slow links touch."""
    slow = slow_links(link for profile in profiles.profiles for link in profile.links)
    if not slow:
        return
    worst = slow[0]
    rank = shared_rank(slow)
    what = (
        f"Link {worst.link.source}-{worst.link.target} ({worst.link.transport}) is slow"
        if len(slow) == 1
        else f"{len(slow)} links are slow" + ("" if rank is None else f", all of rank {rank}")
    )
    yield Advice(
        "links",
        what,
        f"{worst.link.source}-{worst.link.target}: {worst.bandwidth_gb_per_s:.1f} GB/s, where "
        f"{worst.peers} alike have {worst.peers_gb_per_s:.1f} GB/s (median)",
        techniques("links", profiles.device),
    )
