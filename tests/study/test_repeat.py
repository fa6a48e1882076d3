"""`repeats.jsonl`: further runs of measured points, kept like trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import UserError
from autotune.measure.outcome import Outcome, Status
from autotune.space.point import Point
from autotune.study.journal import Journal
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord


def repeat(number: int, role: Role = Role.CERTIFY) -> Repeat:
    outcome = Outcome(Status.OK, "measured", 1.25, (1.2, 1.3), 8, peak_memory_bytes=900)
    record = TrialRecord(number, Point({"sp_degree": 2}), outcome, 9.5, 100.0, 109.5, 1, "abc")
    return Repeat(role, record, "c0ffee", 2)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "repeats.jsonl", Repeat)
    written = [repeat(0), repeat(1, Role.CONTROL), repeat(2, Role.RECHECK)]
    journal.append(*written)
    assert journal.read() == written


@pytest.mark.parametrize(
    "line",
    [
        repeat(1).record.to_line(),
        repeat(1).to_line().replace('"certify"', '"guess"'),
        repeat(0).to_line(),
        "[]",
    ],
)
def test_a_line_that_is_no_repeat_is_named(tmp_path: Path, line: str) -> None:
    journal = Journal(tmp_path / "repeats.jsonl", Repeat)
    journal.append(repeat(0))
    with journal.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError, match=r"repeats\.jsonl, line 2"):
        journal.read()
