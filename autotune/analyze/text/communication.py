"""Communication by operation and group, and whether a rank or a link is slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.findings.ranks import slow_rank_evidence, uneven_evidence
from autotune.analyze.links import shared_rank, slow_links, sum_links
from autotune.analyze.names import clean, shorten
from autotune.analyze.profile import CollectiveTime
from autotune.analyze.ranks import RankVerdict
from autotune.analyze.summary import ProfileSet, sum_collectives
from autotune.analyze.text.words import UNKNOWN, count_of, gigabytes_per_s, heading, share, table
from autotune.analyze.text.words import milliseconds as ms
from autotune.config.quantities import format_bytes

_MOST_ROWS = 10
_MOST_LINKS = 5
_HEADER = ["", "group", "calls", "total ms", "moving", "waiting", "idle", "hidden", "size", "GB/s"]


def communication(profiles: ProfileSet) -> Iterator[RenderableType]:
    """Shares are of the operation's total time."""
    sums = sum_collectives(c for profile in profiles.profiles for c in profile.collectives)
    if not sums:
        return
    ranks = sum(1 for profile in profiles.profiles if profile.collectives)
    note = "all that was profiled" + (f", {ranks} ranks together" if ranks > 1 else "")
    yield heading("Communication", note)
    yield table(_HEADER, [_row(each) for each in sums[:_MOST_ROWS]], left=2)
    if len(sums) > _MOST_ROWS:
        yield Text(f"and {count_of(len(sums) - _MOST_ROWS, 'other')}", "dim")
    if any(each.transit_us is not None for each in sums):
        yield Text(
            "moving: data move; waiting: for other ranks; idle: neither; hidden: behind compute; "
            "GB/s: over all links together, while data move.",
            "dim",
        )
    elif any(each.size_bytes is not None for each in sums):
        yield Text("GB/s: over the whole time, waiting for other ranks included.", "dim")


def _row(total: CollectiveTime) -> Sequence[str]:
    size = total.size_bytes
    return [
        total.operation,
        shorten(total.group, 14),
        f"{total.count:,}",
        ms(total.elapsed_us),
        share(total.transit_us, total.elapsed_us),
        share(total.wait_us, total.elapsed_us),
        share(total.idle_us, total.elapsed_us),
        share(total.overlapped_us, total.elapsed_us),
        UNKNOWN if size is None else format_bytes(size),
        gigabytes_per_s(total.bandwidth_gb_per_s),
    ]


def ranks_and_links(profiles: ProfileSet, verdict: RankVerdict) -> Iterator[RenderableType]:
    """The slow rank and the slow link, or that there is none."""
    several = len(verdict.works) > 1
    linked = sum_links(link for profile in profiles.profiles for link in profile.links)
    if not several and not linked:
        return
    yield heading("Slow ranks and links")
    lines = _ranks(verdict) if several else []
    if profiles.unseen_ranks:
        lines.append(f"At least {profiles.unseen_ranks} more ranks were not profiled.")
    if linked:
        lines += _links(profiles, len(linked))
    yield from (Text(clean(line)) for line in lines)


def _ranks(verdict: RankVerdict) -> list[str]:
    if verdict.slow:
        return [f"{slow.label}: {slow_rank_evidence(slow)}" for slow in verdict.slow]
    if verdict.uneven is not None:
        found = uneven_evidence(verdict.uneven)
        return [f"No single rank stands out, but they are uneven: {found}"]
    owns = [work.own_us for work in verdict.works]
    return [
        f"No rank stands out among {len(owns)}: own work without communication takes "
        f"{ms(min(owns))} to {ms(max(owns))} ms a step."
    ]


def _links(profiles: ProfileSet, count: int) -> list[str]:
    slow = slow_links(link for profile in profiles.profiles for link in profile.links)
    if not slow:
        return [f"No link stands out among {count}."]
    lines = [
        f"link {s.link.source}-{s.link.target} ({s.link.transport}): "
        f"{s.bandwidth_gb_per_s:.1f} GB/s, the median of {s.peers} alike is "
        f"{s.peers_gb_per_s:.1f} GB/s"
        for s in slow[:_MOST_LINKS]
    ]
    if len(slow) > _MOST_LINKS:
        lines.append(f"and {count_of(len(slow) - _MOST_LINKS, 'other link')}")
    if (rank := shared_rank(slow)) is not None:
        lines.append(f"all of them touch rank {rank}")
    return lines
