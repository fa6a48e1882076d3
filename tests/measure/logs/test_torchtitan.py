"""Lines of torchtitan, quoted from its issues and from guides that show them."""

from __future__ import annotations

import math

import pytest

from autotune.measure.logs.rates import Batch
from tests.measure.logs.reading import read, times

BATCH = Batch(tokens=4 * 8192, devices=4)


def test_colours() -> None:
    """The order of colours is that of `components/metrics.py`."""
    reading = read(
        "torchtitan",
        "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - \x1b[31mstep: 14  \x1b[32mloss:  "
        "3.24405  \x1b[38;2;180;60;0mgrad_norm:  0.8319  \x1b[36mmemory:  9.46GiB(64.99%)  "
        "\x1b[34mtps: 7,282  \x1b[36mtflops: 0.52  \x1b[35mmfu: 0.17%\x1b[39m",
        batch=BATCH,
    )
    (step,) = reading.steps
    assert (step.step, step.loss, step.grad_norm) == (14, 3.24405, 0.8319)
    assert step.time_s == pytest.approx(8192 / 7282)
    assert reading.memory[0].peak_reserved_bytes == round(9.46 * 2**30)
    assert reading.memory[0].rank == 0


def test_first_step_then_every_tenth() -> None:
    """pytorch.org's tutorial; the first line is of one step, the second of the nine after it."""
    reading = read(
        "torchtitan",
        "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step:  1  loss: 12.2254  memory: "
        "27.34GiB(28.78%)  tps: 375  tflops: 21.73  mfu: 2.20%",
        "[rank0]:[titan] 2025-06-04 08:51:58,557 - root - INFO - step: 10  loss: 10.7069  memory: "
        "30.99GiB(32.62%)  tps: 7,034  tflops: 407.35  mfu: 41.19%",
        "[rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: "
        "30.99GiB(32.62%)  tps: 7,022  tflops: 406.65  mfu: 41.12%",
        batch=BATCH,
    )
    assert [step.averaged_over for step in reading.steps] == [1, 9, 10]
    assert [s.time_s for s in reading.steps] == pytest.approx(
        [8192 / 375, 8192 / 7034, 8192 / 7022]
    )


def test_older_columns_and_a_share_of_the_steps() -> None:
    reading = read(
        "torchtitan",
        "[rank0]:2024-12-13 17:29:23,398 - root - INFO - step: 30  loss:  1.7148  memory: "
        "14.91GiB(18.82%)  wps: 48,655  mfu: 13.87% it/s: 0.37 im/s: 5.94",
        "[rank0]:2025-04-01 00:25:47,084 - root - INFO - step: 40/644 = 6.3789%  loss:  6.2116  "
        "memory: 87.04GiB(93.48%)  tps: 52,142  mfu: 3.09%",
        "[rank0]:[titan] 2026-01-29 10:15:45,267 - root - INFO - step:  50  loss:  9.3421  memory: "
        "48.91GiB(51.52%)  tps: 21,734",
        batch=BATCH,
    )
    assert times(reading) == [
        (30, pytest.approx(8192 / 48655)),
        (40, pytest.approx(8192 / 52142)),
        (50, pytest.approx(8192 / 21734)),
    ]


def test_a_rate_that_ends_the_line_and_may_be_cut() -> None:
    """Only whole groups of thousands show that nothing is missing."""

    def steps(rate: str) -> int:
        return len(read("torchtitan", f"step: 5  loss: 9.1  tps: {rate}", batch=BATCH).steps)

    assert [steps(rate) for rate in ("21,734", "21,73", "21,", "21", "734")] == [1, 0, 0, 0, 0]


def test_no_loss_and_no_norm() -> None:
    reading = read("torchtitan", "step: 5  memory: 1.88GiB(3.95%)  tps: 11,486  tflops: 0.81")
    assert [(s.step, s.loss, s.time_s) for s in reading.steps] == [(5, None, None)]


def test_a_loss_that_is_no_number() -> None:
    reading = read(
        "torchtitan",
        "step: 5  loss:     nan  grad_norm:     nan  memory: 1.88GiB(3.95%)  tps: 11,486  tflops: "
        "0.81  mfu: N/A",
        batch=BATCH,
    )
    assert math.isnan(reading.steps[0].loss or 0)
    assert math.isnan(reading.steps[0].grad_norm or 0)


@pytest.mark.parametrize(
    "line",
    [
        "validate step: 10  loss:  7.1234  memory: 30.99GiB(32.62%)  tps: 9,000",
        "\x1b[33mvalidate step: 10  \x1b[32mloss:  7.1234  \x1b[34mtps: 9,000  x",
        "Dumping profiler traces at step 200",
        "Training starts at step 1, with local batch size 8",
        "XPU memory usage for model: 0.30GiB(0.48%)",
        "Saving the checkpoint (or staging if async is enabled) at step: 10",
    ],
)
def test_lines_that_are_no_steps(line: str) -> None:
    reading = read("torchtitan", line, batch=BATCH)
    assert (reading.steps, reading.memory) == ((), ())
