"""Made evidence: ranks, ends and a short way to diagnose."""

from __future__ import annotations

from typing import Any

from autotune.measure.failures.diagnose import diagnose
from autotune.measure.failures.diagnosis import Diagnosis
from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.records import RankError
from autotune.ports import EndKind, RankExit, TrialEnd


def end(kind: EndKind = EndKind.RANK_FAILED, *exits: RankExit, reason: str = "as said") -> TrialEnd:
    return TrialEnd(3, kind, reason, 0.0, 9.0, exits)


def error(rank: int, message: str, kind: str = "exception") -> RankError:
    return RankError(rank, kind, message)


def known(diagnosis: Diagnosis | None) -> Diagnosis:
    assert diagnosis is not None
    return diagnosis


def of(*ranks: RankEvidence, **options: Any) -> Diagnosis:
    """The diagnosis of ranks of which one failed."""
    options = {"device": "npu", **options}
    how = options.pop("end", None) or end()
    return known(diagnose(ranks, how, **options))


def of_log(text: str, **options: Any) -> Diagnosis:
    """The diagnosis of one rank by its log."""
    return of(RankEvidence(0, log=text, steps=options.pop("steps", 0)), **options)
