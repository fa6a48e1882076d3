"""Links between ranks against each other: the slow one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from autotune.analyze.profile import LinkTime
from autotune.analyze.robust import distance, needed_distance

# Less than this is latency, not bandwidth.
_LEAST_BYTES = 1e6
# Links are alike when none carries more than so many times what another one does.
_SIMILAR = 4.0
_FEWEST_PEERS = 3
# Links that are alike differ by a few percent from one capture to the next.
_LEAST_SPREAD = 0.02
_WORTH_NAMING = 0.8


@dataclass(frozen=True)
class SlowLink:
    """A link that is slower than its like. peers: with how many links it was compared."""

    link: LinkTime
    bandwidth_gb_per_s: float
    peers_gb_per_s: float
    peers: int


def sum_links(links: Iterable[LinkTime]) -> tuple[LinkTime, ...]:
    """The traffic between each two ranks by transport, over all groups; not a rank's own."""
    sums: dict[tuple[int, int, str], LinkTime] = {}
    for link in links:
        if link.source == link.target:
            continue
        key = (link.source, link.target, link.transport)
        known = sums.get(key)
        sums[key] = (
            replace(link, group="")
            if known is None
            else replace(
                known,
                size_bytes=known.size_bytes + link.size_bytes,
                transit_us=known.transit_us + link.transit_us,
            )
        )
    return tuple(sums[key] for key in sorted(sums))


def slow_links(links: Iterable[LinkTime]) -> tuple[SlowLink, ...]:
    """Links slower than others of the same transport that carry similar amounts, worst first.

    Needs three such others, a bandwidth below 80 % of their median, and more distance from
    them than they have among each other.
    """
    summed = [link for link in sum_links(links) if link.size_bytes >= _LEAST_BYTES]
    found = [slow for alike in _alike(summed) for slow in _slow(alike)]
    return tuple(sorted(found, key=lambda s: s.bandwidth_gb_per_s / s.peers_gb_per_s))


def _alike(links: Sequence[LinkTime]) -> Iterator[list[LinkTime]]:
    """Links of one transport whose sizes lie within the same factor."""
    alike: list[LinkTime] = []
    for link in sorted(links, key=lambda k: (k.transport, k.size_bytes)):
        first = alike[0] if alike else link
        if link.transport != first.transport or link.size_bytes > _SIMILAR * first.size_bytes:
            yield alike
            alike = []
        alike.append(link)
    yield alike


def _slow(alike: Sequence[LinkTime]) -> Iterator[SlowLink]:
    known = [(k, gb) for k in alike if (gb := k.bandwidth_gb_per_s) is not None]
    if len(known) <= _FEWEST_PEERS:
        return
    suspicious = _WORTH_NAMING * median(bandwidth for _, bandwidth in known)
    for at, (link, bandwidth) in enumerate(known):
        if bandwidth >= suspicious:
            continue
        peers = [other for place, (_, other) in enumerate(known) if place != at]
        middle = median(peers)
        far = -distance(bandwidth, peers, floor=_LEAST_SPREAD * middle)
        if far >= needed_distance(len(known)):
            yield SlowLink(link, bandwidth, middle, len(peers))


def shared_rank(slow: Sequence[SlowLink]) -> int | None:
    """The one rank that all slow links touch: its network card or cable is the suspect."""
    if len(slow) < 2:
        return None
    shared = set.intersection(*({s.link.source, s.link.target} for s in slow))
    return shared.pop() if len(shared) == 1 else None
