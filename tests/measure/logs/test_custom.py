"""Formats that a user writes."""

from __future__ import annotations

import pytest

from autotune.errors import UserError
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Batch
from tests.measure.logs.reading import read, times

NANOGPT = r"iter (?P<step>\d+): loss (?P<loss>[\d.]+), time (?P<time>[\d.]+ms)"
STEP = r"step (?P<step>\d+) time (?P<time_s>[\d.]+)"


def test_nanogpt() -> None:
    """karpathy/nanoGPT issue 110."""
    reading = read(
        NANOGPT,
        "iter 1631: loss 4.0863, time 561.94ms",
        "iter 1632: loss 3.7441, time 563.15ms",
        "step 1632: train loss 3.7, val loss 3.8",
    )
    assert times(reading) == [(1631, pytest.approx(0.56194)), (1632, pytest.approx(0.56315))]
    assert [step.loss for step in reading.steps] == [4.0863, 3.7441]


def test_several_kinds_of_lines_by_name() -> None:
    """NVIDIA-NeMo/Automodel pull request 3473: a rate, and memory beside it."""
    patterns = {
        "step": r"\| step (?P<step>\d+) \|.* loss (?P<loss>\S+) .* tps (?P<tokens_per_s>[\d.]+)\(",
        "memory": r"\| mem (?P<memory>\S+ GiB) \|",
    }
    line = (
        "2026-08-10 15:55:20 | INFO | root | step 9 | epoch 0 | loss 0.6974 | grad_norm 1.5436 | "
        "lr 1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541"
    )
    reading = read(patterns, line, batch=Batch(tokens=21541))
    assert times(reading) == [(9, pytest.approx(21541 / 11278.56))]
    assert reading.steps[0].loss == 0.6974
    assert reading.peak_bytes == round(24.90 * 2**30)


def test_a_bar_with_seconds_a_step() -> None:
    """Lightning-AI/pytorch-lightning issue 4225, as a terminal gets it."""
    bar = r"(?P<step>\d+)/\d+ \[.*, +(?P<time>[\d.]+s)/it, loss=(?P<loss>[\d.]+)"
    log = "\r".join(
        [
            "Epoch 0:   0%|          | 0/18 [00:00<?, ?it/s] ",
            "Epoch 0:   6%|▌         | 1/18 [00:08<02:29,  8.77s/it, loss=10.473, v_num=193315]",
            "Epoch 0:  11%|█         | 2/18 [00:11<01:33,  5.82s/it, loss=10.224, v_num=193315]",
        ]
    )
    reading = read(bar, log)
    assert times(reading) == [(1, 8.77), (2, 5.82)]


@pytest.mark.parametrize(
    ("group", "text", "batch", "seconds"),
    [
        ("time_s", "0.5", Batch(), 0.5),
        ("time_ms", "500", Batch(), 0.5),
        ("time_us", "500,000", Batch(), 0.5),
        ("time", "0.5 sec", Batch(), 0.5),
        ("steps_per_s", "2.0", Batch(), 0.5),
        ("samples_per_s", "64", Batch(samples=32), 0.5),
        ("samples_per_s_per_device", "16", Batch(samples=32, devices=4), 0.5),
        ("samples_per_s_per_device", "16", Batch(samples=32), None),
        ("tokens_per_s", "11.5K", Batch(tokens=5750), 0.5),
        ("tokens_per_s_per_device", "1,000", Batch(tokens=1000, devices=2), 0.5),
        ("tokens_per_s", "64", Batch(samples=32), None),
    ],
)
def test_ways_to_tell_a_time(group: str, text: str, batch: Batch, seconds: float | None) -> None:
    reading = read(rf"step (?P<step>\d+) - (?P<{group}>.*)", f"step 3 - {text}", batch=batch)
    assert times(reading) == [(3, None if seconds is None else pytest.approx(seconds))]


@pytest.mark.parametrize(
    ("group", "text", "count"),
    [
        ("memory_mib", "3", 3 * 2**20),
        ("memory_gib", "1.5GiB", round(1.5 * 2**30)),
        ("peak_reserved_bytes", "4096", 4096),
        ("peak_allocated", "2 GB", 2**31),
        ("peak_device_gib", "2", 2**31),
    ],
)
def test_ways_to_tell_memory(group: str, text: str, count: int) -> None:
    reading = read([STEP, rf"(?P<rank>\d+) holds (?P<{group}>[\d.]+( GB)?)"], f"7 holds {text}")
    assert [(memory.rank, memory.peak_bytes) for memory in reading.memory] == [(7, count)]


@pytest.mark.parametrize(
    "line",
    [
        "step 3 time 0.",
        "step 3 time 0.4…",
        "step 3 time 0.4K",
        "step 3 time 41ms",
        "step 3 time 0.4step 4 ti",
        "step 3 time 0.4\ufffd",
        "step 3 time 1,234",
        "step 3 time 0.0",
        "step 3 time nan",
        "step 3 time ",
    ],
)
def test_numbers_that_are_not_whole_or_no_times(line: str) -> None:
    assert read(STEP, line).steps == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 3 time 0.4s", [(3, 0.4)]),
        ("step 3 time 0.4, loss 2", [(3, 0.4)]),
        ("(step 3 time 0.4)", [(3, 0.4)]),
        ("step 3 tistep 4 time 0.5", [(4, 0.5)]),
        ("step 3 time 0.4 step 4 time 0.5", [(3, 0.4), (4, 0.5)]),
    ],
)
def test_numbers_that_are_whole(line: str, expected: list[tuple[int, float]]) -> None:
    assert times(read(STEP, line)) == expected


def test_a_match_does_not_run_over_a_line_that_was_cut_off() -> None:
    pattern = r"step (?P<step>\d+).* time (?P<time_s>[\d.]+)"
    assert times(read(pattern, "step 3 losstep 4 loss 2 time 0.5")) == [(4, 0.5)]
    pattern = r"(?P<step>\d+)/100 .*time (?P<time_s>[\d.]+)"
    assert times(read(pattern, "34/100 ti 35/100 time 0.5")) == [(35, 0.5)]


def test_a_pattern_that_eats_digits_reads_nothing_wrong() -> None:
    assert read(r"step (?P<step>\d+).*(?P<time_s>\d+\.\d+)", "step 3 time 12.34").steps == ()


def test_columns_between_commas() -> None:
    reading = read(r"^(?P<step>\d+),(?P<time_ms>\d+),(?P<loss>[\d.]+)$", "3,412,7.5", "4,398,7.25")
    assert times(reading) == [(3, 0.412), (4, 0.398)]
    assert [step.loss for step in reading.steps] == [7.5, 7.25]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("megatrom", ["megatrom", "megatron"]),
        ("", ["deepspeed, json, megatron, torchtitan"]),
        (3, ["3", "regular expression", "(?P<step>"]),
        ([], ["[]", "regular expression"]),
        ([3], ["3", "regular expressions"]),
        ("step (?P<step>[", ["(?P<step>[", "unterminated character set"]),
        (r"(\d+)", [r"(\\d+)", "neither a time nor memory", "time_ms"]),
        (r"(?P<step>\d+) (?P<seconds>\d+)", ["'seconds'", "samples_per_s"]),
        (r"took (?P<time_s>\S+)", ["time_s", "not of which step", "`step`"]),
        (r"(?P<step>\d+) (?P<time_s>\S+) (?P<time_ms>\S+)", ["2 times", "time_s, time_ms"]),
        ([r"mem (?P<memory>\S+)"], ["how long a step took", "time_s", "steps_per_s"]),
        ({"memory": r"mem (?P<memory>\S+)"}, ["how long a step took"]),
    ],
)
def test_what_is_wrong_is_said_in_words(given: object, words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        format_of(given, "trainer.printed")
    for word in ["trainer.printed", *words]:
        assert word in str(raised.value)
