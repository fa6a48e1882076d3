"""What certification is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune.certify.contest import ContestRules
from autotune.measure.spread import RunSpread


@dataclass(frozen=True)
class CertifySettings:
    """How much is measured again before the export.

    enabled: False exports the fastest trial as it was measured. finalists: how many points at
    most run against the baseline. recheck_within: a point whose only run was slower than the
    best by no more than this share is measured once more, since one bad moment may have cost
    it that much. max_rechecks: how many at most; None for as many as fit into a quarter of the
    device time that the trials took.
    loss_tolerance: see `autotune.measure.work`. spread: between runs, assumed at first.
    """

    enabled: bool = True
    finalists: int = 2
    recheck_within: float = 0.35
    max_rechecks: int | None = None
    loss_tolerance: float = 0.01
    rules: ContestRules = field(default_factory=ContestRules)
    spread: RunSpread = field(default_factory=lambda: RunSpread(0.03))
