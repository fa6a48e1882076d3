"""From where the time and the memory went to what a person can do about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autotune.analyze.technique import Parameters
from autotune.analyze.techniques import techniques
from autotune.config.quantities import format_bytes

# The share of the step from which a phase is worth a person's time. Loading and
# post-processing can be hidden or dropped, so little of them is much.
_STANDS_OUT = {
    "data_loading": 0.05,
    "communication": 0.10,
    "scheduling": 0.10,
    "optimizer": 0.10,
    "post_processing": 0.05,
    "bubble": 0.05,
}
_WHAT = {
    "data_loading": "The device waits for data",
    "communication": "Communication is not hidden behind compute",
    "scheduling": "The device waits for the host to launch work",
    "optimizer": "The optimizer takes long",
    "post_processing": "Much happens after the backward pass",
    "bubble": "Pipeline stages wait for each other",
}
_MOSTLY_COMPUTE = 0.5
# Compute cannot be taken away, only made cheaper: what takes more than this comes before it.
_COMPUTE_COMES_AT = 0.20
_COMPUTE = ("forward_backward", "operators", "layout", "ai_cpu")
_MEMORY_IS_FULL = 0.90
_MEMORY_IS_FREE = 0.70


@dataclass(frozen=True)
class Advice:
    """One finding. topic: a phase, `memory`, `ranks`, ... evidence: the numbers behind it.

    techniques: what to try, the most promising first. share: of the step that is at stake,
    None where no time is.
    """

    topic: str
    what: str
    evidence: str
    techniques: tuple[str, ...]
    share: float | None = None


def bottleneck(
    breakdown_s: Mapping[str, float],
    peak_bytes: float | None,
    limit_bytes: float | None,
    parameters: Mapping[str, object] | None = None,
    device: str = "",
) -> list[Advice]:
    """What limits a step, the largest first, then what its memory allows or needs.

    breakdown_s: seconds by phase (`autotune.measure.records.PHASES`; `bubble` besides, and
    `computing` where the phases that compute are not known apart); what is no number, or
    negative, is passed over. peak_bytes, limit_bytes: of a device, None where unknown.
    parameters: the point that was run, so that only what can still move is named. device:
    `npu` adds the settings of MindSpeed-MM and torch_npu.
    """
    known = {n: s for n, s in breakdown_s.items() if math.isfinite(s) and s > 0}
    total_s = sum(known.values())
    full = peak_bytes is not None and limit_bytes and peak_bytes >= _MEMORY_IS_FULL * limit_bytes
    found = [
        Advice(
            name,
            _WHAT[name],
            phase_evidence(name, known[name], total_s),
            techniques(name, device, parameters, bool(full)),
            known[name] / total_s,
        )
        for name in known
        if name in _STANDS_OUT and known[name] >= _STANDS_OUT[name] * total_s
    ]
    compute = "forward_backward" if "forward_backward" in breakdown_s else "computing"
    computing = known.get(compute, 0.0) / total_s if total_s else 0.0
    if total_s and (computing >= _MOSTLY_COMPUTE or not found):
        what = (
            "Most of the step is the model's own compute"
            if found
            else "Nothing stands out: the step is bound by the model's own compute"
        )
        evidence = phase_evidence(compute, computing * total_s, total_s)
        ways = techniques("forward_backward", device, parameters, bool(full))
        found.append(Advice("forward_backward", what, evidence, ways, computing))
    memory = _memory(peak_bytes, limit_bytes, device, parameters)
    return by_weight([*found, memory] if memory else found)


def by_weight(found: Iterable[Advice]) -> list[Advice]:
    """What is worth most comes first; what costs no time comes last, in the order given."""

    def weight(advice: Advice) -> float:
        share = advice.share or 0.0
        return min(share, _COMPUTE_COMES_AT) if advice.topic in _COMPUTE else share

    return sorted(found, key=lambda advice: -weight(advice))


def phase_label(name: str) -> str:
    """A phase as people call it."""
    return "forward and backward" if name == "forward_backward" else name.replace("_", " ")


def phase_evidence(name: str, part_s: float, total_s: float) -> str:
    """Such as `scheduling: 51.0 ms of 156.0 ms a step (33%)`."""
    share = part_s / total_s
    return (
        f"{phase_label(name)}: {part_s * 1e3:.1f} ms of {total_s * 1e3:.1f} ms a step ({share:.0%})"
    )


def _memory(
    peak_bytes: float | None,
    limit_bytes: float | None,
    device: str,
    parameters: Parameters | None,
) -> Advice | None:
    if peak_bytes is None or not limit_bytes or not math.isfinite(peak_bytes):
        return None
    used = peak_bytes / limit_bytes
    evidence = f"peak {format_bytes(peak_bytes)} of {format_bytes(limit_bytes)} ({used:.0%})"
    if used > 1:
        what, topic = "The peak of memory is over the limit", "memory"
    elif used >= _MEMORY_IS_FULL:
        what, topic = "Memory is nearly full, which keeps faster configurations out", "memory"
    elif used <= _MEMORY_IS_FREE:
        what, topic = "Memory is left that could buy time", "headroom"
    else:
        return None
    return Advice("memory", what, evidence, techniques(topic, device, parameters))
