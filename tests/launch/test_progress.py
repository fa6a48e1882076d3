"""Progress is read from records as they grow, torn lines and foreign lines included."""

from __future__ import annotations

from pathlib import Path

from autotune.ports import Deadlines
from launch.progress import RankProgress, RecordFollower, current_wait, note_events

LIMITS = Deadlines(start_s=10, first_step_s=100, step_s=20)


def test_only_new_and_complete_lines_count(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    follower = RecordFollower(path)
    assert follower.new_events() == []
    with path.open("a") as file:
        file.write('{"event": "start"}\n{"event": "st')
        file.flush()
        assert follower.new_events() == ["start"]
        file.write('ep"}\n' + "[" * 100_000)
        file.write('\nno json\n[1]\n{"event": 3}\n{"no": "event"}\n\n{"event": "step"}\n')
        file.flush()
        assert follower.new_events() == ["step", "step"]
        assert follower.new_events() == []


def test_a_huge_file_is_read_in_bounded_parts(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    line = '{"event": "step"}\n'
    count = (3 << 20) // len(line)
    path.write_text(line * count)
    follower = RecordFollower(path)
    seen = [len(follower.new_events()) for _ in range(5)]
    assert sum(seen) == count
    assert max(seen) < count / 2


def progress(rank: int, started: float | None = None, step: float | None = None) -> RankProgress:
    return RankProgress(rank, started, step)


def until(*ranks: RankProgress, everyone: tuple[RankProgress, ...] = ()) -> float:
    return current_wait(0.0, ranks, everyone or ranks, LIMITS).until


def test_which_deadline_applies() -> None:
    assert until(progress(0, 3.0), progress(1)) == 10  # rank 1 has not started
    assert until(progress(0, 3.0), progress(1, 5.0)) == 105  # from when the last one started
    assert until(progress(0, 3.0, 50.0), progress(1, 5.0)) == 105  # rank 1 has made no step
    assert until(progress(0, 3.0, 50.0), progress(1, 5.0, 60.0)) == 70  # rank 0 is the slowest


def test_a_rank_that_has_exited_is_not_waited_for() -> None:
    done = progress(0, 3.0, 50.0)
    assert until(progress(1, 5.0, 60.0), everyone=(done, progress(1, 5.0, 60.0))) == 80


def test_a_step_implies_the_start() -> None:
    rank = progress(0)
    note_events(rank, ["step"], now=4.0)
    assert (rank.started_at, rank.last_step_at) == (4.0, 4.0)
    note_events(rank, ["memory", "end", "error"], now=9.0)
    assert (rank.started_at, rank.last_step_at) == (4.0, 4.0)


def test_a_program_that_starts_again_has_its_first_step_before_it() -> None:
    one = RankProgress(0)
    note_events(one, ["start", "step"], 5.0)
    assert (one.started_at, one.last_step_at) == (5.0, 5.0)
    note_events(one, ["start"], 40.0)
    assert until(one) == 140
    note_events(one, ["step"], 90.0)
    assert until(one) == 110
