"""Lines of DeepSpeed, quoted from its issues and from guides that show them."""

from __future__ import annotations

import math

import pytest

from autotune.measure.logs.rates import Batch
from tests.measure.logs.reading import read, times


def test_timer_and_step_lines_tell_of_one_step() -> None:
    """The rate is of the last step alone, the skipped ones are counted from the start."""
    reading = read(
        "deepspeed",
        "[2023-12-29 13:02:49,647] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2, "
        "lr=[0.0003333333333333334], mom=[(0.9, 0.999)]",
        "[2023-12-29 13:02:49,654] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10,"
        " RunningAvgSamplesPerSec=110.86936118523683, CurrSamplesPerSec=111.33670009091573, "
        "MemAllocated=1.87GB, MaxMemAllocated=6.12GB",
        "{'loss': 0.8091, 'learning_rate': 0.0003333333333333334, 'epoch': 0.08}",
        "[2023-12-29 13:02:51,108] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=2, "
        "lr=[0.0004336766652213271], mom=[(0.9, 0.999)]",
        "[2023-12-29 13:02:51,116] [INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=20,"
        " RunningAvgSamplesPerSec=110.5, CurrSamplesPerSec=100.0, MemAllocated=1.87GB, "
        "MaxMemAllocated=6.12GB",
        batch=Batch(samples=64),
    )
    assert [(s.step, s.skipped, s.averaged_over) for s in reading.steps] == [
        (10, True, 1),
        (20, False, 1),
    ]
    assert [s.time_s for s in reading.steps] == pytest.approx([64 / 111.33670009091573, 0.64])
    assert {m.peak_allocated_bytes for m in reading.memory} == {round(6.12 * 2**30)}


def test_an_overflow_flags_the_step_that_is_printed_next() -> None:
    timer = "[timer.py:197:stop] 0/{}, RunningAvgSamplesPerSec=9.0, CurrSamplesPerSec=8.0, Mem"
    reading = read(
        "deepspeed",
        timer.format(1),
        "[2023-12-11 16:39:34,450] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. "
        "Skipping step. Attempted loss scale: 65536, reducing to 32768.0",
        timer.format(2),
        timer.format(3),
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1",
        "[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 1, reducing to 1",
        timer.format(4),
        "[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 1, reducing to 1",
        timer.format(5),
        batch=Batch(samples=8),
    )
    assert [(s.step, s.skipped) for s in reading.steps] == [
        (1, False), (2, True), (3, False), (4, True), (5, False)
    ]  # fmt: skip


def test_the_pipeline_engine_prints_a_mean() -> None:
    """microsoft/onnxruntime's and DeepSpeed's examples, diffusion-pipe without the rate."""
    reading = read(
        "deepspeed",
        "steps: 100 loss: 0.0585 iter time (s): 0.186 samples/sec: 53.694 ",
        "steps: 200 loss: 5.5508 lm loss: 5.5103 moe loss: 0.0405 iter time (s): 0.936 "
        "samples/sec: 136.706",
        "steps: 300 loss: nan iter time (s): 2.784",
        "  loss: loss_fn",
    )
    assert times(reading) == [(100, 0.186), (200, 0.936), (300, 2.784)]
    assert [s.averaged_over for s in reading.steps] == [100, 100, 100]
    assert [s.loss for s in reading.steps][:2] == [0.0585, 5.5508]
    assert math.isnan(reading.steps[2].loss or 0)


def test_a_running_mean_is_no_time_of_a_step() -> None:
    """deepspeedai/DeepSpeed issue 1825; only the memory of such a line is used."""
    reading = read(
        "deepspeed",
        "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.48609168106144"
        ", MemAllocated=0.26GB, MaxMemAllocated=9.02GB",
        batch=Batch(samples=64),
    )
    assert reading.steps == ()
    assert reading.peak_bytes == round(9.02 * 2**30)


def test_memory_reports() -> None:
    reading = read(
        "deepspeed",
        "[2025-07-26 00:39:06,761] [INFO] [utils.py:782:see_memory_usage] MA 1.76 GB         "
        "Max_MA 2.02 GB         CA 2.53 GB         Max_CA 3 GB ",
    )
    assert reading.peak_bytes == round(2.02 * 2**30)


def test_a_bar_in_front() -> None:
    reading = read(
        "deepspeed",
        "  0%|          | 0/500 [00:00<?, ?it/s][2022-07-26 19:15:51,159] [INFO] [stage3.py:1834:"
        "_overflow_clean_up] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
        "65536, reducing to 65536\r  0%|▍       | 1/500 [00:00<03:47,  2.19it/s]steps: 1 loss: "
        "1.5000 iter time (s): 0.400 samples/sec: 5.000",
    )
    assert [(s.step, s.time_s, s.skipped) for s in reading.steps] == [(1, 0.4, True)]
