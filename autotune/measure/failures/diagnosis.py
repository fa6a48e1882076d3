"""The answer: why a trial failed and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.failures.oom_numbers import OomNumbers
from autotune.measure.outcome import Status

LONGEST_QUOTE = 300


@dataclass(frozen=True)
class Diagnosis:
    """Why a trial failed.

    rank: where it began, None where that is not known. quote: the words that say the cause, at
    most LONGEST_QUOTE characters. where: file of the trial's folder that has them, or
    `exit code`, `launcher`. frame: of the user's code, `file:line in function`. summary: what
    happened, as a clause. advice: what to do next, as a sentence. device: as the text names it,
    such as `NPU 3`. host: of that rank. numbers: of an out-of-memory message.
    Raises ValueError for a quote that is too long or has lines.
    """

    kind: FailureKind
    policy: Policy
    rank: int | None
    quote: str
    where: str
    summary: str
    advice: str
    frame: str | None = None
    device: str | None = None
    host: str | None = None
    numbers: OomNumbers | None = None

    def __post_init__(self) -> None:
        if len(self.quote) > LONGEST_QUOTE or "\n" in self.quote:
            raise ValueError(f"a quote is one line of at most {LONGEST_QUOTE} characters")

    @property
    def status(self) -> Status:
        """How the trial stands in the journal."""
        return Status.HUNG if self.kind is FailureKind.HUNG else self.policy.status

    @property
    def reason(self) -> str:
        """What happened and the words that say so, for the journal."""
        place = f" ({self.frame})" if self.frame else ""
        return f"{self.summary}: {self.quote}{place}"

    @property
    def explanation(self) -> str:
        """What happened and what to do next, for a person."""
        return f"{self.summary[0].upper()}{self.summary[1:]}. {self.advice}"
