"""Rank records: one JSON object a line, at once, and never NaN."""

from __future__ import annotations

import json

from launch.rank.recorder import Recorder


def test_a_record_is_on_disk_before_the_rank_goes_on(tmp_path, monkeypatch):
    file = tmp_path / "rank0.jsonl"
    monkeypatch.setenv("AUTOTUNE_RECORDS", str(file))
    recorder = Recorder.from_environment()
    recorder.start(0, 4, "cpu", "2.13.0")
    assert json.loads(file.read_text())["world_size"] == 4
    recorder.step({"step": 0, "loss": float("nan"), "phases_s": {"optimizer": float("inf")}})
    recorder.end()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start", "step", "end"]
    assert lines[1]["loss"] is None
    assert lines[1]["phases_s"] == {"optimizer": None}


def test_nothing_is_written_outside_a_trial(tmp_path, monkeypatch):
    monkeypatch.delenv("AUTOTUNE_RECORDS", raising=False)
    monkeypatch.chdir(tmp_path)
    Recorder.from_environment().end()
    assert list(tmp_path.iterdir()) == []
