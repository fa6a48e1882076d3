"""Whatever is cut off, overwritten or mixed up: a step is read right, or not at all."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from autotune.measure.logs.formats import BUILT_IN
from autotune.measure.logs.lines import LineSplitter
from autotune.measure.logs.printed import LogReading
from autotune.measure.logs.rates import Batch
from autotune.measure.logs.reader import LogReader, read_log

BATCH = Batch(samples=1, tokens=1, devices=1)
LINES = {
    "megatron": [
        " iteration      128/    1000 | consumed samples:         1024 | elapsed time per iteration"
        " (ms): 12884.5 | learning rate: 1.250E-04 | global batch size:  1024 | lm loss: "
        "2.775923E+00 | loss scale: 32768.0 | grad norm: 15.125 | number of skipped iterations:   "
        "1 | number of nan iterations:   0 |",
        "[2026-11-29 19:15:55] iteration       12/      40 | consumed samples:            8 | "
        "elapsed time per iteration (ms): 490.6 | learning rate: 1.000000E-04 | global batch size:"
        "     4 | loss: 6.254961E+00 | grad norm: 1.215 |",
        "[Rank 3] (after 12 iterations) memory (MB) | allocated: 724.5 | max allocated: 1724.5 | "
        "reserved: 1800.0 | max reserved: 2800.0",
        "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: "
        "85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | "
        "tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05",
    ],
    "torchtitan": [
        "[rank1]:[titan] 2026-02-24 19:40:56,246 - root - INFO - step:  40  loss:  7.86874  "
        "grad_norm: 24.3750  memory: 176.47GiB(98.94%)  tps: 18,629  tflops: 270.19  mfu: 12.01%",
        "[titan] 2025-06-04 08:52:10 - root - INFO - step: 20  loss:  8.9196  tps: 21,734",
    ],
    "deepspeed": [
        "[INFO] [timer.py:260:stop] epoch=0/micro_step=199/global_step=199, "
        "RunningAvgSamplesPerSec=58.73, CurrSamplesPerSec=61.35304005, MemAllocated=6.01GB, "
        "MaxMemAllocated=19.52GB",
        "steps: 100 loss: 0.0585 iter time (s): 10.186 samples/sec: 53.694",
    ],
    "json": [
        '[rank0]: {"event": "step", "step": 31, "time_s": 0.4125, "loss": 2.5, "tokens": 4096}',
    ],
}
CASES = [(name, line) for name, lines in LINES.items() for line in lines]
MEMORY = LINES["megatron"][2]
BAR = " 50%|\N{FULL BLOCK}   | 1/2 [00:01<00:01]"


def read(name: str, log: str) -> LogReading:
    return read_log(BUILT_IN[name], log.encode(), BATCH)


def told(reading: LogReading) -> set[tuple[object, ...]]:
    """What was read, without what a cut line may lack; memory in whole MiB."""
    steps = {(s.step, s.time_s, s.skipped) for s in reading.steps}
    return {*steps, *((m.step, m.peak_bytes >> 20) for m in reading.memory)}


def values(reading: LogReading) -> set[object]:
    named = [(s.loss, s.grad_norm, s.samples, s.tokens) for s in reading.steps]
    return {value for step in named for value in step if value is not None}


def damaged(line: str, other: str) -> Iterator[str]:
    """The line cut at every place, and with another written into it there."""
    for place in range(0, len(line), 1 if other == line else 3):
        yield line[:place]
        yield line[:place] + "\n"
        yield line[:place] + "\n" + line[place:] + "\n"
        yield line[:place] + other + "\n" + line[place:] + "\n"
        if not other.endswith("21,734"):  # which any three digits behind a comma go on
            yield line[:place] + other + line[place:] + "\n"
        yield line[:place] + "\r" + other + "\n"
        yield line[place:] + "\n"
        yield line[:place] + "\x1b[3"


@pytest.mark.parametrize(("name", "line"), CASES)
def test_a_damaged_line_is_read_right_or_not_at_all(name: str, line: str) -> None:
    for other in (line, MEMORY, BAR):
        right = [read(name, f"{line}\n"), read(name, f"{other}\n")]
        for log in damaged(line, other):
            reading = read(name, log)
            assert told(reading) <= told(right[0]) | told(right[1]), log
            assert values(reading) <= values(right[0]) | values(right[1]), log


@pytest.mark.parametrize(("name", "line"), CASES)
def test_the_whole_line_is_read(name: str, line: str) -> None:
    assert told(read(name, f"{line}\n"))


@pytest.mark.parametrize(("name", "line"), CASES)
def test_colours_anywhere_change_nothing(name: str, line: str) -> None:
    right = read(name, f"{line}\n")
    for place in range(len(line)):
        assert read(name, f"{line[:place]}\x1b[1;32m{line[place:]}\x1b[0m\n") == right


@pytest.mark.parametrize("name", LINES)
def test_pieces_of_any_size_are_read_alike(name: str) -> None:
    log = "\r\n".join(["训练 \N{FULL BLOCK}", *LINES[name], ""]).encode()
    right = read_log(BUILT_IN[name], log, BATCH)
    draw = random.Random(5)
    for _ in range(20):
        splitter, reader = LineSplitter(), LogReader(BUILT_IN[name], BATCH)
        rest = log
        while rest:
            size = draw.randint(1, 60)
            reader.feed(splitter.feed(rest[:size]))
            rest = rest[size:]
        reader.feed(splitter.finish())
        assert reader.reading == right


@pytest.mark.parametrize("name", LINES)
def test_noise_is_no_step_and_no_error(name: str) -> None:
    draw = random.Random(7)
    words = ["iteration", "1/", "2", "|", "steps:", "loss:", "(ms):", "3.5K", "nan", '{"event":']
    for _ in range(500):
        noise = draw.randbytes(40) + " ".join(draw.choices(words, k=12)).encode() + b"\n"
        assert read_log(BUILT_IN[name], noise, BATCH).steps == ()


def test_a_skipped_update_is_not_missed_in_a_line_that_was_cut() -> None:
    """The column comes last; without it the line must not count as a good step."""
    line = LINES["megatron"][0]
    cut = line[: line.index(" number of skipped")]
    reading = read("megatron", f"{cut}\n")
    assert reading.steps == ()
    assert reading.cut_lines == 1
