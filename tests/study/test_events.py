"""What was said is kept, whatever happens to the file."""

from __future__ import annotations

from pathlib import Path

from autotune.study.events import Event, append_event, read_events


def test_events_come_back_in_order_and_cut_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_events(path) == ()
    said = [Event(1.5, "NPU 3 调优\nleft out"), Event(2.0, '"x"')]
    for event in said:
        append_event(path, event)
    with path.open("ab") as file:
        file.write(b'{"at": "x"}\n[]\n{"at": NaN, "text": "y"}\n\xff\n{"at": 3, "te')
    assert list(read_events(path)) == said
