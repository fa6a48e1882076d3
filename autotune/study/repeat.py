"""One line of `repeats.jsonl`: another run of a point that a trial has measured already.

Repeats do not count towards `search.max_trials` and are not told to Optuna: they say how
far the machine can be believed, and which of the best points is the best.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from autotune.json_object import json_object
from autotune.study.trial_record import TrialRecord

FIRST_LAUNCH = 1_000_000
"""Number of a repeat's launch less its own number: beyond every trial's."""


class Role(StrEnum):
    """Why a point was run again."""

    CONTROL = "control"  # the baseline, now and then, to see whether the machine drifts
    RECHECK = "recheck"  # a point that may have been measured in a bad moment
    CERTIFY = "certify"  # a finalist or the baseline, interleaved


@dataclass(frozen=True)
class Repeat:
    """Another run. record: its result, whose `trial` is the repeat's own number.

    contest: names the set of points that were certified against each other; round: of it.
    """

    role: Role
    record: TrialRecord
    contest: str = ""
    round: int = 0

    @property
    def number(self) -> int:
        """The repeat's number."""
        return self.record.trial

    def to_line(self) -> str:
        """The JSON text, without a line end."""
        data = self.record.to_data()
        entry: dict[str, Any] = {
            "repeat": data.pop("trial"),
            "role": self.role.value,
            "contest": self.contest,
            "round": self.round,
            **data,
        }
        return json.dumps(entry, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> Repeat:
        """Reads one line. Raises ValueError, TypeError or KeyError when it is no repeat."""
        entry = json_object(line)
        if "repeat" not in entry:
            raise ValueError(f"no repeat: {line[:80]!r}")
        record = TrialRecord.from_data({**entry, "trial": entry["repeat"]})
        return cls(
            Role(entry["role"]),
            record,
            str(entry.get("contest") or ""),
            int(entry.get("round") or 0),
        )
