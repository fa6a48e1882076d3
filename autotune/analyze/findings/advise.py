"""All advice on a set of profiles, what is worth most first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from autotune.analyze.advice import Advice, bottleneck, by_weight
from autotune.analyze.findings.communication import (
    explain_communication,
    link_findings,
    small_messages,
)
from autotune.analyze.findings.memory import memory_findings
from autotune.analyze.findings.operators import operator_findings, short_kernels_evidence
from autotune.analyze.findings.ranks import rank_findings, slow_step_findings
from autotune.analyze.names import kernel
from autotune.analyze.profile import Gap, Profile, StepTime
from autotune.analyze.ranks import RankVerdict
from autotune.analyze.summary import ProfileSet, mean_step, peak_bytes

_LONG_GAP = 0.1


def advise(
    profiles: ProfileSet, verdict: RankVerdict, limit_bytes: float | None = None
) -> list[Advice]:
    """The bottleneck of the mean step, and what ranks, links, operators and memory show."""
    step = mean_step(profiles.steps)
    found = [] if step is None else list(_about_steps(profiles, step, limit_bytes))
    found += [
        *rank_findings(verdict, profiles),
        *slow_step_findings(profiles),
        *link_findings(profiles),
        *operator_findings(profiles, step),
        *memory_findings(profiles),
    ]
    return by_weight(found)


def breakdown_s(step: StepTime) -> dict[str, float]:
    """Seconds by phase; where phases are not known, what the device did.

    A wait for another pipeline stage is no traffic: it is taken out of communication.
    """
    if step.phases_us is None:
        parts = {
            "computing": step.computing_us,
            "communication": step.not_overlapped_us,
            "scheduling": step.free_us + step.preparing_us,
        }
    else:
        parts = dict(step.phases_us)
    bubble_us = min(step.bubble_us, parts.get("communication", 0.0))
    if bubble_us > 0:
        parts["communication"] -= bubble_us
        parts["bubble"] = bubble_us
    return {name: part / 1e6 for name, part in parts.items()}


def _about_steps(
    profiles: ProfileSet, step: StepTime, limit_bytes: float | None
) -> Iterator[Advice]:
    peaks = [peak for p in profiles.profiles if (peak := peak_bytes(p)) is not None]
    peak = max(peaks, default=None)
    for advice in bottleneck(breakdown_s(step), peak, limit_bytes, device=profiles.device):
        if advice.topic == "communication":
            yield explain_communication(advice, profiles, step)
        elif advice.topic == "scheduling":
            evidence = [
                advice.evidence,
                short_kernels_evidence(profiles),
                _longest_gap(profiles, step),
            ]
            yield replace(advice, evidence="; ".join(words for words in evidence if words))
        else:
            yield advice
    yield from small_messages(profiles, step.total_us)


def _longest_gap(profiles: ProfileSet, step: StepTime) -> str:
    """Where the device waited longest for the host alone, where that is much of its waiting."""
    gaps = [gap for profile in profiles.profiles for gap in _host_gaps(profile)]
    longest = max(gaps, key=lambda gap: gap.duration_us, default=None)
    if longest is None or longest.duration_us < _LONG_GAP * (step.free_us + step.preparing_us):
        return ""
    before = f", before {kernel(longest.after, 40)}" if longest.after else ""
    return f"the longest idle gap is {longest.duration_us / 1e3:.1f} ms{before}"


def _host_gaps(profile: Profile) -> Iterator[Gap]:
    """Not the gaps in which data were loaded: those are longer than the step's scheduling."""
    waiting = {s.step: (s.phases_us or {}).get("scheduling", math.inf) for s in profile.steps}
    for gap in profile.gaps:
        if gap.cause == "host" and gap.duration_us <= waiting.get(gap.step, math.inf):
            yield gap
