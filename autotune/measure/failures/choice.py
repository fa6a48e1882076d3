"""Of all that was found, what came first.

The most certain text wins over all that may be its consequence, whichever rank said it; among
equals a text over an exit code, then that of a rank that ended by itself over that of one that
was ended, then the earliest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from autotune.measure.failures.evidence import EXIT_CODE, Finding
from autotune.ports import TrialEnd

_DAY_S = 86_400.0
_NEAR_LINES = 15  # in which a code and the text to it stand


def best_of(found: Sequence[Finding], end: TrialEnd) -> Finding | None:
    """The finding that is nearest to the cause, None where there is none."""
    if not found:
        return None
    certainty = max(finding.certainty for finding in found)
    equal = [finding for finding in found if finding.certainty is certainty]
    by_rank: dict[tuple[int | None, str], list[Finding]] = {}
    for finding in equal:
        by_rank.setdefault((finding.rank, finding.where), []).append(finding)
    firsts = [_first(same) for same in by_rank.values()]
    own = {exit_.rank for exit_ in end.exits if exit_.code != 0 and not exit_.by_us}
    begin = _begin_s([first.time_s for first in firsts if first.time_s is not None])

    def order(finding: Finding) -> tuple[bool, bool, float, int]:
        time_s = float("inf") if finding.time_s is None else (finding.time_s - begin) % _DAY_S
        return (
            finding.where == EXIT_CODE,
            bool(own) and finding.rank not in own,
            time_s,
            -1 if finding.rank is None else finding.rank,
        )

    return min(firsts, key=order)


def _first(same: Sequence[Finding]) -> Finding:
    """What a rank said first, with the first time that its words have."""
    ordered = sorted(same, key=lambda finding: finding.line)
    first = ordered[0]
    times = [finding.time_s for finding in ordered if finding.time_s is not None]
    told = first
    if first.is_code:
        near = (f for f in ordered if f.kind is first.kind and not f.is_code)
        told = next((f for f in near if f.line - first.line < _NEAR_LINES), first)
    return replace(told, time_s=times[0] if times else None)


def _begin_s(times: Collection[float]) -> float:
    """The earliest of times of day, which may lie before midnight when others lie after it.

    It is the one behind the longest gap of the day.
    """
    ordered = sorted(times)
    if not ordered:
        return 0.0
    gaps = [(time_s - ordered[n - 1]) % _DAY_S for n, time_s in enumerate(ordered)]
    return ordered[gaps.index(max(gaps))]
