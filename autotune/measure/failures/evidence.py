"""What a rank leaves behind, and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.failures.signature import Certainty
from autotune.measure.records import RankError

EXIT_CODE = "exit code"
"""Where a finding comes from that is in no file."""


@dataclass(frozen=True)
class RankEvidence:
    """One rank of a failed trial.

    errors: as recorded, oldest first. log: its output or the head and tail of it, any length,
    empty where there is none. steps: that it has recorded. held_bytes: the most that its
    allocator is known to have held, 0 where it is known to have held nothing, None where nothing
    is known. host: where it ran. Raises ValueError for negative numbers.
    """

    rank: int
    errors: tuple[RankError, ...] = ()
    log: str = ""
    steps: int = 0
    held_bytes: int | None = None
    host: str | None = None

    def __post_init__(self) -> None:
        if self.rank < 0 or self.steps < 0 or (self.held_bytes or 0) < 0:
            raise ValueError(
                f"rank={self.rank}, steps={self.steps}, held_bytes={self.held_bytes}: "
                "all are at least 0"
            )

    @property
    def log_name(self) -> str:
        """The rank's log in the trial's folder."""
        return f"rank{self.rank}.log"

    @property
    def records_name(self) -> str:
        """The rank's records in the trial's folder."""
        return f"rank{self.rank}.jsonl"


@dataclass(frozen=True)
class Finding:
    """A text that may say why the trial failed.

    rank: whose failure it tells of. where: file of the trial's folder. line: its place there.
    quote: the text. context: the lines from there on that belong to it. frame: of the user's
    code, `file:line in function`. time_s: seconds since midnight. policy: where it calls for
    another than its kind. opens_device: nothing could have been allocated before. is_code: it
    is a number, beside which a text of the same kind says more.
    """

    kind: FailureKind
    certainty: Certainty
    rank: int | None
    where: str
    quote: str
    line: int = 0
    context: str = ""
    frame: str | None = None
    time_s: float | None = None
    policy: Policy | None = None
    opens_device: bool = False
    is_code: bool = False
