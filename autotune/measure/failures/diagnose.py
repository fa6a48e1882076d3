"""What all ranks of a failed trial left behind -> the root cause and what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autotune.config.quantities import format_bytes
from autotune.measure.failures.choice import best_of
from autotune.measure.failures.diagnosis import LONGEST_QUOTE, Diagnosis
from autotune.measure.failures.evidence import Finding, RankEvidence
from autotune.measure.failures.exits import search_exits
from autotune.measure.failures.explain import what_happened, what_to_do
from autotune.measure.failures.kinds import FailureKind, Policy, policy_of
from autotune.measure.failures.log_lines import Log
from autotune.measure.failures.oom_numbers import OomNumbers, parse_oom_numbers
from autotune.measure.failures.search_rank import search_rank, search_records
from autotune.measure.failures.signature import Certainty
from autotune.measure.failures.suspicion import suspicion
from autotune.ports import DeviceType, EndKind, TrialEnd

_LAUNCHER = "launcher"

_OUT_OF_MEMORY = (FailureKind.DEVICE_OOM, FailureKind.PINNED_HOST_OOM, FailureKind.HOST_OOM)
_FALLBACK: Mapping[EndKind, FailureKind] = {
    EndKind.FINISHED: FailureKind.CRASHED,
    EndKind.RANK_FAILED: FailureKind.CRASHED,
    EndKind.HUNG: FailureKind.HUNG,
    EndKind.LOST: FailureKind.LOST,
    EndKind.STOPPED: FailureKind.KILLED,
}
_DEVICE = re.compile(
    r"\b(?P<npu>NPU|GPU) (?P<n>[0-9]+)(?:;| has)"
    r"|\b(?:Device:|device_id=|dev_id=|deviceId=|Device\[)(?P<m>[0-9]+)"
    r"|\((?P<pci>PCI:[0-9A-Fa-f:.]+)\)"
)


def diagnose(
    ranks: Sequence[RankEvidence],
    end: TrialEnd,
    *,
    device: DeviceType,
    is_baseline: bool = False,
) -> Diagnosis | None:
    """Why the trial failed, None where it did not: all ranks ended well and recorded no error.

    device: that the ranks train on; on `cpu` the host's memory is the device's. is_baseline:
    the point is the user's present configuration, which is known to fit.
    """
    is_told = any(rank.errors for rank in ranks)
    if end.kind is EndKind.FINISHED and not is_told:
        return None
    best = best_of(_findings(ranks, end), end)
    by_rank = {rank.rank: rank for rank in ranks}
    if best is None:
        best = _fallback(ranks, end)
    return _concluded(best, by_rank, device, is_baseline)


def _findings(ranks: Sequence[RankEvidence], end: TrialEnd) -> list[Finding]:
    """What counts, given how the trial ended.

    Ranks that exited well, or that were told to stop, may log what they like. Of a node that was
    lost the ranks see consequences; only what names a cause explains it.
    """
    if end.kind in (EndKind.FINISHED, EndKind.STOPPED):
        return [finding for rank in ranks for finding in search_records(rank)]
    found = [finding for rank in ranks for finding in search_rank(rank)]
    if end.kind is EndKind.LOST:
        return [finding for finding in found if finding.certainty is Certainty.CAUSE]
    explained = {rank.rank for rank in ranks if _says_something(rank.rank, found)}
    return found + search_exits(end.exits, explained)


def _says_something(rank: int, found: Sequence[Finding]) -> bool:
    return any(finding.rank == rank for finding in found)


def _fallback(ranks: Sequence[RankEvidence], end: TrialEnd) -> Finding:
    """What the launcher knows; of a trial that hung, the last words of the slowest rank."""
    kind = _FALLBACK[end.kind]
    slowest = min(ranks, key=lambda rank: rank.steps, default=None)
    if kind is FailureKind.HUNG and slowest is not None and slowest.log.strip():
        said = [line.body for line in Log.parse(slowest.log).lines if line.body.strip()]
        return Finding(kind, Certainty.SYMPTOM, slowest.rank, slowest.log_name, said[-1])
    return Finding(kind, Certainty.SYMPTOM, None, _LAUNCHER, end.reason)


def _concluded(
    finding: Finding,
    by_rank: Mapping[int, RankEvidence],
    device: DeviceType,
    is_baseline: bool,
) -> Diagnosis:
    evidence = None if finding.rank is None else by_rank.get(finding.rank)
    numbers = parse_oom_numbers(finding.context or finding.quote)
    said = kind = _of_device(finding, device)
    why: str | None = None
    if said in _OUT_OF_MEMORY:
        why = suspicion(finding, numbers, evidence, is_baseline)
    if why is not None:
        kind = FailureKind.SUSPECT_MACHINE
    policy = policy_of(kind, is_baseline)
    if why is None and finding.policy is not None:
        policy = finding.policy
    host = None if evidence is None else evidence.host
    return Diagnosis(
        kind,
        policy,
        finding.rank,
        _quoted(finding.quote),
        finding.where,
        _summary(said, policy, finding, evidence, numbers, why),
        what_to_do(kind, policy, finding.quote),
        finding.frame,
        _device(finding),
        host,
        numbers,
    )


def _of_device(finding: Finding, device: DeviceType) -> FailureKind:
    """On a CPU the memory of the host is what the trial is held against."""
    is_certain = finding.policy is not Policy.RETRY
    if device == "cpu" and finding.kind is FailureKind.HOST_OOM and is_certain:
        return FailureKind.DEVICE_OOM
    return finding.kind


def _summary(
    kind: FailureKind,
    policy: Policy,
    finding: Finding,
    evidence: RankEvidence | None,
    numbers: OomNumbers | None,
    why: str | None,
) -> str:
    host = None if evidence is None else evidence.host
    what = what_happened(kind, policy, finding.rank, host)
    if why is not None:
        return f"{what}, but {why}"
    held = _held(evidence, numbers)
    if kind is FailureKind.DEVICE_OOM and held:
        return f"{what} after holding {format_bytes(held)}"
    return what


def _held(evidence: RankEvidence | None, numbers: OomNumbers | None) -> int | None:
    own = None if numbers is None else numbers.own
    recorded = None if evidence is None else evidence.held_bytes
    return max((bytes_ for bytes_ in (own, recorded) if bytes_ is not None), default=None)


def _device(finding: Finding) -> str | None:
    match = _DEVICE.search(finding.quote) or _DEVICE.search(finding.context)
    if match is None:
        return None
    if match["pci"]:
        return match["pci"]
    return f"{match['npu'] or 'device'} {match['n'] or match['m']}"


def _quoted(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= LONGEST_QUOTE else f"{one_line[: LONGEST_QUOTE - 1]}…"
