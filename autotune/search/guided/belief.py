"""What is known of a space before anything is measured there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from autotune.search.guided.geometry import Codes, Floats


class Belief(Protocol):
    """Predicts time and memory from the runs so far; what it misses is learned on top of it.

    Rows are as in `LegalSpace.codes`. The answers are logarithms, None where it has none.
    """

    def log_seconds(self, seen: Codes, seconds: Floats, rows: Codes) -> Floats | None:
        """Of the batch time at rows, given the seconds (seen,) of measured points."""
        ...

    def log_bytes(self, seen: Codes, peaks: Floats, rows: Codes) -> Floats | None:
        """Of the peak memory at rows, given the bytes (seen,) of measured points."""
        ...


@dataclass(frozen=True)
class Knowledge:
    """limit_bytes: on peak memory, None where it is not known. belief: None for nothing."""

    limit_bytes: float | None = None
    belief: Belief | None = None

    def __post_init__(self) -> None:
        limit = self.limit_bytes
        if limit is not None and not 0 < limit < math.inf:
            raise ValueError(f"limit_bytes={limit} must be a finite number above 0, or None")
