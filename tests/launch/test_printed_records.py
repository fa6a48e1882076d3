"""What a program prints becomes records, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import UNKNOWN_BATCH, Batch
from autotune.measure.records import parse_rank_records
from launch.printed_records import PrintedRecords

PATTERNS = {
    "step": r"step (?P<step>\d+) \| loss (?P<loss>\S+) \| (?P<time_ms>[\d.]+) ms",
    "memory": r"rank (?P<rank>\d+) peak (?P<peak_allocated_gib>[\d.]+) GiB",
}


class Printed:
    """A program's lines go in, its records are read back at any moment."""

    def __init__(
        self, path: Path, patterns: object = PATTERNS["step"], batch: Batch = UNKNOWN_BATCH
    ) -> None:
        self.path = path
        self.writer = PrintedRecords(path, format_of(patterns, "trainer.printed"), batch)

    def say(self, text: str, rank: int = 0) -> None:
        self.writer.feed(rank, text.encode())

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    @property
    def steps(self) -> list[tuple[int, float]]:
        return [(one["step"], one["time_s"]) for one in self.records if one["event"] == "step"]


def line(step: int, ms: float = 10.0, loss: float = 1.5) -> str:
    return f"step {step} | loss {loss} | {ms} ms\n"


def lines(steps: Iterable[int], ms: float = 10.0) -> str:
    return "".join(line(step, ms) for step in steps)


@pytest.fixture
def printed(tmp_path: Path) -> Printed:
    return Printed(tmp_path / "printed0.jsonl")


def test_a_step_is_written_when_the_next_one_is_printed(printed: Printed) -> None:
    printed.say("starting\n" + line(1))
    assert printed.records == []
    printed.say(line(2)[:12])
    assert printed.records == []
    printed.say(line(2)[12:])
    (first,) = printed.records
    assert first.items() >= {"event": "step", "step": 1, "time_s": 0.01, "loss": 1.5}.items()


def test_the_last_step_is_written_at_the_end_even_without_a_newline(printed: Printed) -> None:
    printed.say(lines([1, 2]) + line(3).rstrip("\n"))
    printed.writer.close()
    printed.writer.close()
    assert printed.steps == [(1, 0.01), (2, 0.01), (3, 0.01)]


def test_ranks_that_print_the_same_step_make_one_of_it(printed: Printed) -> None:
    for step in (1, 2, 3):
        printed.say(line(step, 10.0), rank=0)
        printed.say(line(step, 12.0), rank=1)
    printed.writer.close()
    assert printed.steps == [(1, 0.012), (2, 0.012), (3, 0.012)]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_that_begins_again_is_written_from_its_first_step(
    printed: Printed, at_once: bool
) -> None:
    printed.say(lines([1, 2, 3]))
    again = [line(step, 20.0) for step in range(1, 6)]
    for text in ["".join(again)] if at_once else again:
        printed.say(text)
    printed.writer.close()
    assert [step for step in printed.steps if step[1] == 0.02] == [(n, 0.02) for n in range(1, 6)]


def test_a_line_that_two_chunks_share_with_a_character(printed: Printed) -> None:
    text = ("步 " + line(1)).encode()
    for cut in range(len(text)):
        printed.writer.feed(0, text[cut : cut + 1])
    printed.writer.close()
    assert printed.steps == [(1, 0.01)]


def test_loss_that_is_no_number_and_noise(printed: Printed) -> None:
    printed.writer.feed(0, b"\xff\xfe\x00 step\n" + line(1, loss=float("nan")).encode())
    printed.say("Traceback (most recent call last):\n")
    printed.writer.close()
    (record,) = [json.loads(one) for one in printed.path.read_text().splitlines()]
    assert record["loss"] != record["loss"]  # a broken step, which is not scored


def test_memory_that_is_printed(tmp_path: Path) -> None:
    printed = Printed(tmp_path / "p.jsonl", PATTERNS)
    printed.say(line(1) + "rank 3 peak 1.5 GiB\n")
    printed.say(line(2))
    memory = [one for one in printed.records if one["event"] == "memory"]
    assert memory == [{"event": "memory", "rank": 3, "peak_allocated_bytes": 3 << 29}]
    printed.writer.close()
    assert len([one for one in printed.records if one["event"] == "memory"]) == 1


# A line of torchtitan as in its repository's pull request 2389, and the next two steps.
TITAN = (
    "[titan] 2026-02-24 19:40:56,246 - root - INFO - step: {step}  loss:  7.86874  "
    "grad_norm: 24.3750  memory: 176.47GiB(98.94%)  tps: 8,192  tflops: 270.19  mfu: 12.01%\n"
)


def test_rates_become_times_by_what_a_batch_holds(tmp_path: Path) -> None:
    printed = Printed(tmp_path / "printed0.jsonl", "torchtitan", Batch(None, 131072, 8))
    printed.say("".join(TITAN.format(step=step) for step in (4, 5, 6)))
    assert printed.steps == [(4, 2.0), (5, 2.0)]  # 131072 tokens, 8 devices of 8192 a second


def test_a_program_that_begins_again_begins_its_records_again(printed: Printed) -> None:
    printed.say(lines((1, 2, 3)))
    printed.say("torchrun: restarting\n" + lines((1, 2, 3)))
    events = [(one["event"], one.get("step")) for one in printed.records]
    assert events == [*(("step", n) for n in (1, 2)), ("start", None), ("step", 1), ("step", 2)]
    (read,) = [parse_rank_records(0, printed.path.read_text().splitlines())]
    assert [step.step for step in read.steps] == [1, 2]
