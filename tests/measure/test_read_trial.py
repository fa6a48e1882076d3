"""A trial's folder, read while it is written: whose records count, and what logs say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from autotune.measure.read import TrialFollower, Voices, read_logs, read_ranks, steps_done
from autotune.study.paths import rank_records_file

EVERY = Voices(2)
ANY = Voices(2, nodes=2, every_rank=False)


def write(path: Path, *events: str, tail: str = "") -> None:
    with path.open("a") as file:
        for number, event in enumerate(events):
            file.write(json.dumps({"event": event, "step": number, "time_s": 0.5}) + "\n")
        file.write(tail)


def test_an_empty_folder_has_ranks_without_steps(tmp_path: Path) -> None:
    assert [len(rank.steps) for rank in read_ranks(tmp_path, EVERY)] == [0, 0]
    assert steps_done(tmp_path, ANY) == 0
    assert read_logs(tmp_path, 2) == {}


def test_the_slowest_rank_counts_where_each_records(tmp_path: Path) -> None:
    write(tmp_path / "rank0.jsonl", "start", "step", "step")
    assert steps_done(tmp_path, EVERY) == 0
    write(tmp_path / "rank1.jsonl", "start", "step")
    assert steps_done(tmp_path, EVERY) == 1
    first, second = read_ranks(tmp_path, EVERY)
    assert (len(first.steps), len(second.steps)) == (2, 1)


def test_any_voice_counts_where_one_speaks_for_all(tmp_path: Path) -> None:
    write(tmp_path / "printed1.jsonl", "step", "step", "step")
    assert steps_done(tmp_path, ANY) == 3
    write(tmp_path / "rank1.jsonl", "step")
    assert [len(rank.steps) for rank in read_ranks(tmp_path, ANY)] == [1, 1]


@pytest.mark.parametrize("name", ["rank0.jsonl", "printed0.jsonl"])
def test_each_line_is_read_once_and_half_lines_later(tmp_path: Path, name: str) -> None:
    follower = TrialFollower(tmp_path, Voices(1, every_rank=False))
    assert not follower.look()
    write(tmp_path / name, "step", tail='{"event": "step", "st')
    assert follower.look()
    assert not follower.look()
    assert follower.steps == 1
    with (tmp_path / name).open("a") as file:
        file.write('ep": 7, "time_s": 0.25}\n')
    assert follower.look()
    (rank,) = follower.ranks
    assert [(step.step, step.time_s) for step in rank.steps] == [(0, 0.5), (7, 0.25)]


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank0.jsonl").write_bytes(b"\xff\xfe\n[1]\n\nnull\n{}\n")
    write(tmp_path / "rank0.jsonl", "step")
    (rank,) = read_ranks(tmp_path, Voices(1))
    assert len(rank.steps) == 1


def test_memory_of_all_ranks_in_one_file(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.jsonl", "step")
    with (tmp_path / "rank0.jsonl").open("a") as file:
        for rank, peak in ((0, 100), (1, 300)):
            record = {"event": "memory", "rank": rank, "peak_device_bytes": peak}
            file.write(json.dumps(record) + "\n")
    assert [rank.peak_device_bytes for rank in read_ranks(tmp_path, EVERY)] == [100, 300]
    assert [rank.peak_device_bytes for rank in read_ranks(tmp_path, ANY)] == [100, 300]


def test_logs_are_read_at_both_ends(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_bytes(b"short \xff\n")
    whole = b"".join(b"line %07d\n" % number for number in range(100_000))
    (tmp_path / "rank1.log").write_bytes(whole)
    (tmp_path / "rank2.log").write_bytes(b"")
    logs = read_logs(tmp_path, 3)
    assert logs[0] == "short \ufffd\n"
    assert 2 not in logs
    lines = logs[1].splitlines()
    assert (lines[0], lines[-1]) == ("line 0000000", "line 0099999")
    assert len(logs[1]) < 400_000
    cut = [line for line in lines if not (line.startswith("line ") and len(line) == 12)]
    assert len(cut) <= 2


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 5, (1 << 16) + (1 << 18)])
def test_a_log_that_just_fits_is_whole(tmp_path: Path, size: int) -> None:
    text = "".join(chr(97 + number % 26) for number in range(size))
    (tmp_path / "rank0.log").write_text(text)
    assert read_logs(tmp_path, 1)[0] == text


def test_records_that_are_no_file_are_none(tmp_path: Path) -> None:
    """A program that puts a device without end in their place must not fill the memory."""
    rank_records_file(tmp_path, 0).symlink_to("/dev/null")
    os.mkfifo(rank_records_file(tmp_path, 1))  # opening it would wait for a writer
    follower = TrialFollower(tmp_path, Voices(2))
    assert not follower.look()
    assert follower.steps == 0
