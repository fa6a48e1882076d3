"""The collected logs read as their index says.

`index.csv` was written by people who looked at the logs; its figures are repeated here.
"""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from autotune.measure.logs.formats import BUILT_IN
from autotune.measure.logs.printed import LogReading
from autotune.measure.logs.rates import UNKNOWN_BATCH, Batch
from autotune.measure.logs.reader import read_log

LOGS = Path(__file__).parents[4] / "shared" / "data" / "logs"
MIB = 1024**2
WITHOUT_STEPS = ("C14", "C20", "C23", "C26", "C28", "C30")

pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the shared data are not here")


def read(start: str, format_: str, batch: Batch = UNKNOWN_BATCH) -> LogReading:
    (path,) = LOGS.glob(f"{start}*")
    return read_log(BUILT_IN[format_], path.read_bytes(), batch)


def times_ms(reading: LogReading) -> list[float]:
    return [1000 * step.time_s for step in reading.steps if step.time_s is not None]


def test_every_log_of_the_index_is_tested_here() -> None:
    index = list(csv.DictReader((LOGS / "index.csv").read_text().splitlines()))
    tested = {"C01", "C04", "C06", "C11", "C15", "C18", "C19", "C27", *WITHOUT_STEPS}
    assert {row["file"][:3] for row in index} == tested


def test_skipped_iterations_without_a_loss() -> None:
    reading = read("C01", "megatron")
    assert times_ms(reading) == pytest.approx([155483.8, 129028.8, 128891.5])
    assert [step.skipped for step in reading.steps] == [True, True, True]
    assert [step.loss for step in reading.steps] == [None, None, None]
    assert [step.samples for step in reading.steps] == [1024] * 3


def test_good_iterations_before_a_time_limit() -> None:
    reading = read("C04", "megatron")
    assert len(reading.steps) == 4
    assert statistics.median(times_ms(reading)[1:]) == pytest.approx(128642.7)
    assert not any(step.skipped for step in reading.steps)
    assert [step.loss for step in reading.steps][:2] == [12.52221, 12.51770]
    assert reading.peak_bytes == 28560 * MIB


def test_seconds_of_six_runs_one_after_the_other() -> None:
    reading = read("C06", "megatron")
    seconds = [step.time_s for step in reading.steps]
    assert seconds == pytest.approx([769.99, 844.81, 430.21, 777.09, 853.81, 434.14])
    assert [(step.run, step.step) for step in reading.steps] == [(run, 2) for run in range(6)]
    assert [step.averaged_over for step in reading.steps] == [None] * 6


def test_times_stay_while_the_loss_jumps() -> None:
    reading = read("C11", "megatron")
    assert len(reading.steps) == 8
    # The lower of the two in the middle: the index gives one of the values.
    assert statistics.median_low(times_ms(reading)) == pytest.approx(22148.5)
    assert {step.averaged_over for step in reading.steps} == {10}
    assert max(step.loss or 0 for step in reading.steps) == 8.715872


def test_a_log_interval_and_a_memory_line_without_a_rank() -> None:
    reading = read("C15", "megatron")
    assert times_ms(reading) == pytest.approx([16491.5, 1993.9])
    assert [(step.averaged_over, step.skipped) for step in reading.steps] == [(5, True)] * 2
    (memory,) = reading.memory
    assert memory.peak_allocated_bytes == round(12606.06201171875 * MIB)
    assert memory.peak_reserved_bytes == 17482 * MIB
    assert (memory.rank, memory.step) == (None, 5)


def test_a_step_that_all_ranks_print_counts_once() -> None:
    batch = Batch(tokens=8 * 8192, devices=8)
    reading = read("C18", "torchtitan", batch)
    assert [(step.step, step.loss, step.run) for step in reading.steps] == [
        (4, 7.86874, 0),
        (5, 6.75186, 0),
    ]
    # The slowest rank: 8,629 and 10,378 tokens a second and device.
    assert [s.time_s for s in reading.steps] == pytest.approx([8192 / 8629, 8192 / 10378])
    assert reading.peak_bytes == round(176.48 * 1024**3)


def test_without_the_tokens_of_a_batch_there_is_no_time() -> None:
    assert [step.time_s for step in read("C18", "torchtitan").steps] == [None, None]


def test_the_dip_while_a_profile_is_written() -> None:
    reading = read("C19", "torchtitan", Batch(tokens=8192, devices=1))
    assert [step.step for step in reading.steps] == [200, 210, 220, 230, 240]
    assert [step.averaged_over for step in reading.steps] == [10] * 5
    slowest = max(reading.steps, key=lambda step: step.time_s or 0)
    assert (slowest.step, slowest.time_s) == (210, pytest.approx(8192 / 5593))
    assert {memory.rank for memory in reading.memory} == {0}


def test_deepspeed_skips_both_steps() -> None:
    reading = read("C27", "deepspeed", Batch(samples=32))
    assert [(step.step, step.skipped) for step in reading.steps] == [(3, True), (4, True)]
    seconds = [step.time_s for step in reading.steps]
    assert seconds == pytest.approx([32 / 156.6578714851469, 32 / 158.53267739554113])
    assert reading.peak_bytes == round(2.52 * 1024**3)


@pytest.mark.parametrize("format_", BUILT_IN)
@pytest.mark.parametrize("start", WITHOUT_STEPS)
def test_other_output_holds_no_steps(start: str, format_: str) -> None:
    assert read(start, format_) == LogReading()


def test_a_real_run_of_mindspeed_mm_with_two_ranks() -> None:
    reading = read("mindspeed_mm", "megatron")
    assert times_ms(reading) == pytest.approx([622.6, 490.6, 905.3, 628.9])
    assert [step.loss for step in reading.steps] == [6.255025, 6.254961, 6.249990, 6.246507]
    assert [step.grad_norm for step in reading.steps] == [1.221, 1.215, 1.209, 1.203]
    assert {(step.samples, step.averaged_over, step.skipped) for step in reading.steps} == {
        (4, 1, False)
    }
    peaks = {rank: [m.peak_bytes for m in reading.memory if m.rank == rank] for rank in (0, 1)}
    assert max(peaks[0]) == 761995264
    assert max(peaks[1]) == 761405440
    assert [len(peak) for peak in peaks.values()] == [5, 5]
    assert reading.cut_lines == 0
