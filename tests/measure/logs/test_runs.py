"""Ranks that print the same steps, and runs one after the other."""

from __future__ import annotations

import pytest

from autotune.measure.logs.formats import BUILT_IN, format_of
from autotune.measure.logs.reader import LogReader
from tests.measure.logs.reading import read

PATTERN = r"step (?P<step>\d+) loss (?P<loss>[\d.]+) time (?P<time_s>[\d.]+)$"


def line(step: int, loss: float = 0, time_s: float = 1.0) -> str:
    return f"step {step} loss {loss or 100 - step} time {time_s}"


def steps(*lines: str) -> list[tuple[int, int]]:
    return [(step.run, step.step) for step in read(PATTERN, *lines).steps]


def test_ranks_that_agree_count_once_and_the_slowest_gives_the_time() -> None:
    reading = read(PATTERN, *(line(s, time_s=t) for s in (1, 2, 3) for t in (1.0, 1.02, 1.01)))
    assert [(s.step, s.run, s.time_s) for s in reading.steps] == [
        (1, 0, 1.02), (2, 0, 1.02), (3, 0, 1.02)
    ]  # fmt: skip


def test_a_rank_may_print_late() -> None:
    assert steps(line(1), line(1), line(2), line(1), line(2), line(2), line(3)) == [
        (0, 1), (0, 2), (0, 3)
    ]  # fmt: skip


def test_ranks_with_losses_of_their_own() -> None:
    """Without a label only the repetition, step after step, tells that they are ranks."""
    reading = read(PATTERN, *(line(s, loss) for s in (1, 2, 3) for loss in (4.0, 6.0)))
    assert [(s.run, s.step, s.loss) for s in reading.steps] == [(0, 1, 5), (0, 2, 5), (0, 3, 5)]


@pytest.mark.parametrize(
    "label", ["[rank{}]:", "{}: ", "[Rank {} | Local Rank 0] ", "[default{}]:"]
)
def test_labels_tell_ranks_apart(label: str) -> None:
    """Even if one prints all of its steps after the other, as buffers may have it."""
    lines = [label.format(r) + line(s, 5 + r, 1 + r / 2) for r in (0, 1) for s in (1, 2)]
    reading = read(PATTERN, *lines)
    assert [(s.run, s.step, s.loss, s.time_s) for s in reading.steps] == [
        (0, 1, 5.5, 1.5),
        (0, 2, 5.5, 1.5),
    ]


def test_runs_one_after_the_other_are_all_kept() -> None:
    runs = [line(s, time_s=t) for t in (1.0, 2.0, 3.0) for s in (1, 2, 3)]
    assert steps(*runs) == [(run, s) for run in range(3) for s in (1, 2, 3)]
    reading = read(PATTERN, *runs)
    assert [s.time_s for s in reading.last_run] == [3.0, 3.0, 3.0]


def test_runs_that_end_in_their_first_step() -> None:
    assert steps(line(1, 5), line(1, 6), line(1, 7), line(2), line(3)) == [
        (0, 1), (1, 1), (2, 1), (2, 2), (2, 3)
    ]  # fmt: skip


def test_one_step_twice_with_other_times_is_of_two_runs() -> None:
    assert steps(line(2, 6.5, 850.0), line(2, 6.5, 430.0)) == [(0, 2), (1, 2)]


def test_a_run_that_goes_on_from_a_checkpoint() -> None:
    assert steps(*map(line, (5, 6, 7, 8, 5, 6))) == [
        (0, 5), (0, 6), (0, 7), (0, 8), (1, 5), (1, 6)
    ]  # fmt: skip


def test_all_ranks_start_again() -> None:
    lines = [f"[rank{r}]:{line(s, time_s=t)}" for t in (1.0, 2.0) for s in (1, 2) for r in (0, 1)]
    reading = read(PATTERN, *lines)
    assert [(s.run, s.step, s.time_s) for s in reading.steps] == [
        (0, 1, 1.0), (0, 2, 1.0), (1, 1, 2.0), (1, 2, 2.0)
    ]  # fmt: skip


def test_megatron_lines_without_a_loss_of_two_runs() -> None:
    text = (
        " iteration {}/ 9 | elapsed time per iteration (ms): {:.1f} | "
        "number of skipped iterations:   1 |"
    )
    reading = read("megatron", text.format(1, 900), text.format(1, 450))
    assert [(s.run, s.time_s) for s in reading.steps] == [(0, 0.9), (1, 0.45)]


def test_each_process_has_its_log() -> None:
    reader = LogReader(format_of(PATTERN, "printed"))
    for source in range(3):
        reader.feed([line(1, 5 + source), line(2, 5 + source)], source)
    assert [(s.run, s.step, s.loss) for s in reader.reading.steps] == [(0, 1, 6), (0, 2, 6)]


def test_a_reading_grows_with_the_log() -> None:
    reader = LogReader(format_of(PATTERN, "printed"))
    assert reader.reading.steps == ()
    reader.feed([line(10)])
    assert [s.averaged_over for s in reader.reading.steps] == [None]
    reader.feed(["nothing", line(20)])
    assert [(s.step, s.averaged_over) for s in reader.reading.steps] == [(10, 10), (20, 10)]


def test_a_skipped_step_is_marked_in_its_own_log() -> None:
    timer = "[timer.py:1:stop] 0/{}, CurrSamplesPerSec=8.0, "
    reader = LogReader(BUILT_IN["deepspeed"])
    reader.feed(["OVERFLOW! Rank 0 Skipping step."], source=0)
    reader.feed([timer.format(1)], source=1)
    assert [s.skipped for s in reader.reading.steps] == [False]
    reader.feed([timer.format(1)], source=0)
    assert [s.skipped for s in reader.reading.steps] == [True]
