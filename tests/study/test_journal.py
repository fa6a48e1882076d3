"""`trials.jsonl` keeps results through kills and careless hands."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import UserError
from autotune.measure.outcome import Outcome, Status, Work
from autotune.measure.records import PHASES
from autotune.space.point import Point
from autotune.study.journal import Journal
from autotune.study.trial_record import GateNote, TrialRecord

FOLDER = "50% a=b,c#1 调优"


def record(trial: int, status: Status = Status.OK, reason: str = "measured") -> TrialRecord:
    outcome = Outcome(
        status,
        reason,
        batch_time_s=1.25,
        batch_time_ci95_s=(1.2, 1.3),
        steps=8,
        warmup_steps=1,
        slow_steps=2,
        within_error_s=0.01,
        peak_memory_bytes=900,
        peak_rank=1,
        peak_device_bytes=900,
        breakdown_s=dict.fromkeys(PHASES, 0.25),
        work=Work(64, 1000, (2.5, 2.25)),
    )
    point = Point({"sp_degree": 2, "bucket_order": "none", "split": [2, 6]})
    return TrialRecord(trial, point, outcome, 9.5, 100.0, 109.5, 1, "abc")


@pytest.fixture
def journal(tmp_path: Path) -> Journal[TrialRecord]:
    return Journal(tmp_path / FOLDER / "trials.jsonl", TrialRecord)


def test_what_is_appended_is_read_back(journal: Journal[TrialRecord]) -> None:
    written = [record(0), record(1, Status.OOM, "rank 1: 内存不足 \n second line")]
    written[1] = replace(written[1], gate=GateNote(0.25, 900, checked=True))
    for entry in written:
        journal.append(entry)
    assert journal.read() == written
    assert len(journal.path.read_bytes().splitlines()) == 2


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_last_line_that_was_cut_off_is_lost_alone(
    journal: Journal[TrialRecord], cut: int
) -> None:
    journal.append(record(0))
    whole = journal.path.read_bytes()
    journal.append(record(1))
    journal.path.write_bytes(journal.path.read_bytes()[:-cut])
    assert journal.read() == [record(0)]
    assert journal.repair() > 0
    assert journal.path.read_bytes() == whole
    journal.append(record(2))
    assert journal.read() == [record(0), record(2)]


def test_a_whole_file_needs_no_repair(journal: Journal[TrialRecord]) -> None:
    assert journal.repair() == 0
    journal.append(record(0))
    assert journal.repair() == 0


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"no json",
        b"\xff\xfe",
        record(1).to_line().replace("1.25,", "-1,", 1).encode(),
        record(1).to_line().replace("1.25,", "0.0,", 1).encode(),
        record(1).to_line().replace('"ok"', '"fine"').encode(),
        record(1)
        .to_line()
        .replace('"peak_memory_bytes": 900', '"peak_memory_bytes": "x"')
        .encode(),
        record(1)
        .to_line()
        .replace('{"samples": 64, "tokens": 1000, "losses": [2.5, 2.25]}', "[1]")
        .encode(),
        record(1).to_line().replace(json.dumps(dict.fromkeys(PHASES, 0.25)), "[3]").encode(),
        record(1).to_line().replace('"optimizer": 0.25, ', "").encode(),
        record(0).to_line().encode(),
        *(
            record(1).to_line().replace('"attempt"', f'"gate": {gate}, "attempt"').encode()
            for gate in (
                "[1]",
                '{"fits": 0.5}',
                '{"fits": 2, "predicted_peak_bytes": 1, "checked": true, "passed_over": false}',
                '{"fits": 0.5, "predicted_peak_bytes": "x", "checked": true, "passed_over": false}',
                '{"fits": 0.5, "predicted_peak_bytes": 1, "checked": 1, "passed_over": false}',
                '{"fits": 0.5, "predicted_peak_bytes": 1, "checked": true, "passed_over": 0}',
                '{"fits": 0.5, "predicted_peak_bytes": 1, "checked": true, "passed_over": "a=1"}',
                '{"fits": 0.5, "predicted_peak_bytes": 1, "checked": true}',
            )
        ),
    ],
)
def test_a_line_in_the_middle_that_is_wrong_is_named(
    journal: Journal[TrialRecord], line: bytes
) -> None:
    journal.append(record(0))
    with journal.path.open("ab") as file:
        file.write(line + b"\n")
    journal.append(record(2))
    with pytest.raises(UserError, match=r"trials\.jsonl, line 2 is no trial record"):
        journal.read()


def test_what_tells_nothing_about_its_point_does_not_count() -> None:
    assert record(0).counts
    assert not record(0, Status.INFRASTRUCTURE).counts
    assert not record(0, Status.SKIPPED).counts


def test_a_line_says_what_the_gate_expected() -> None:
    told = replace(record(0), gate=GateNote(0.25, 900, checked=True)).to_data()
    gate = {"fits": 0.25, "predicted_peak_bytes": 900, "checked": True, "passed_over": None}
    assert told["gate"] == gate
    assert "gate" not in record(0).to_data()


def test_a_line_says_in_whose_place_the_point_was_launched() -> None:
    note = GateNote(0.9, 900, passed_over=Point({"sp_degree": 2, "order": [1, None]}))
    noted = replace(record(0), gate=note)
    assert noted.to_data()["gate"]["passed_over"] == {"sp_degree": 2, "order": [1, None]}
    assert TrialRecord.from_line(noted.to_line()) == noted


@pytest.mark.parametrize("told", [True, False])
def test_older_lines_say_only_whether_a_point_was_passed_over(told: bool) -> None:
    """Without the point it cannot be counted."""
    line = replace(record(0), gate=GateNote(0.25, 900)).to_line()
    older = line.replace('"passed_over": null', f'"passed_over": {str(told).lower()}')
    assert older != line
    assert TrialRecord.from_line(older).gate == GateNote(0.25, 900)


def test_only_what_was_launched_was_checked() -> None:
    note = GateNote(0.0, None, checked=True)
    assert replace(record(0), gate=note).was_checked
    assert not replace(record(0, Status.SKIPPED), gate=note).was_checked
    assert not replace(record(0), gate=GateNote(0.9, 900)).was_checked


def test_a_full_disk_leaves_the_journal_as_it_was(
    journal: Journal[TrialRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(record(0))
    before, write = journal.path.read_bytes(), os.write

    def fill_up(descriptor: int, data: bytes) -> int:
        if len(data) < 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:-30])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fill_up)
        with pytest.raises(UserError, match=r"disk is full.*the result of trial 1.*same command"):
            journal.append(record(1))
    assert journal.path.read_bytes() == before
    journal.append(record(1))
    assert [one.trial for one in journal.read()] == [0, 1]
