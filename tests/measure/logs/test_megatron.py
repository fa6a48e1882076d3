"""Lines of Megatron-LM of all ages and of its kin.

Where a line is quoted, its origin stands beside it; the expected values are those that a person
reads in it.
"""

from __future__ import annotations

import math

import pytest

from tests.measure.logs.reading import read, times

MIB = 1024**2


def test_2019_writes_no_colons() -> None:
    """NVIDIA/Megatron-LM before `total_loss_dict`."""
    reading = read(
        "megatron",
        " iteration      100/  320000 | elapsed time per iteration (ms): 523.4 | "
        "learning rate 1.500E-06 | lm loss 9.876543E+00 | loss scale 4294967296.0 |",
        " iteration      200/  320000 | elapsed time per iteration (ms): 501.2 | "
        "learning rate 3.000E-06 | lm loss 8.765432E+00 |",
    )
    assert times(reading) == [(100, 0.5234), (200, 0.5012)]
    assert [step.loss for step in reading.steps] == [9.876543, 8.765432]
    assert [step.averaged_over for step in reading.steps] == [100, 100]


def test_core_with_a_clock_throughput_and_energy() -> None:
    """NVIDIA/Megatron-LM core_r0.12 and later; NVIDIA-NeMo/Megatron-Bridge issue 4024."""
    reading = read(
        "megatron",
        " [2026-05-28 22:26:20.123456] iteration       29/    6069 | consumed samples:        14848"
        " | skipped samples:           16 | elapsed time per iteration (ms): 26813.0 | throughput "
        "per GPU (TFLOP/s/GPU): 449.6 | energy per GPU (J/iter/GPU): 9000.0 | power per GPU "
        "(W/GPU): 610.0 | learning rate: 5.800000E-05 | global batch size:   512 | lm loss: "
        "8.716962E-01 | seq_load_balancing_loss: 1.253194E+00 | mtp_1 loss: 1.115410E+00 | "
        "loss scale: 1.0 | grad norm: 0.852 | num zeros: 71.0 | params norm: 8660.607 | number "
        "of skipped iterations:   0 | number of nan iterations:   0 |",
    )
    (step,) = reading.steps
    assert (step.step, step.time_s, step.loss, step.grad_norm, step.samples, step.skipped) == (
        29, 26.813, 0.8716962, 0.852, 512, False
    )  # fmt: skip


def test_the_helpers_of_the_loss_are_not_the_loss() -> None:
    def loss(columns: str) -> float | None:
        line = (
            f" iteration 1/ 10 | elapsed time per iteration (ms): 10.0 |{columns} loss scale: 1.0 |"
            " number of skipped iterations:   0 |"
        )
        return read("megatron", line).steps[0].loss

    assert loss(" load_balancing_loss: 1.0E+00 | loss: 2.0E+00 |") == 2
    assert loss(" mtp_1 loss: 1.0E+00 | lm loss: 2.0E+00 |") == 2
    assert loss(" total_load_balancing_loss: 1.0E+00 |") is None
    assert loss(" reduced_train_loss: 3.0E+00 |") == 3
    assert loss(" discriminator loss: 4.0E+00 |") == 4
    assert loss("") is None


def test_an_endless_run_and_bert() -> None:
    """NVIDIA/nccl issue 743; forks that train without an end."""
    reading = read(
        "megatron",
        " iteration       20/ infinity | consumed samples:           80 | elapsed time per "
        "iteration (ms): 140.6 | learning rate: 2.020E-08 | global batch size:     4 | lm loss: "
        "1.005022E+01 | sop loss: 8.174902E-01 | loss scale: 32768.0 | grad norm: 217.199 | number "
        "of skipped iterations:   2 | number of nan iterations:   0 |",
    )
    (step,) = reading.steps
    assert (step.time_s, step.loss, step.skipped) == (0.1406, 10.05022, True)


def test_gpt_neox_begins_with_a_rate() -> None:
    """deepspeedai/DeepSpeed issue 3742."""
    reading = read(
        "megatron",
        " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): "
        "4103.1 | learning rate: 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: "
        "1.118665E+01 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    )
    assert times(reading) == [(34, 4.1031)]
    assert reading.steps[0].loss == 11.18665


def test_argonne_writes_equals_and_underscores() -> None:
    """argonne-lcf/Megatron-DeepSpeed, notes of 2024."""
    reading = read(
        "megatron",
        "[2024-06-21 10:50:42][INFO][training:1609] -  iteration=       1/  317892 | "
        "consumed_samples=         768 | consumed_tokens=     3145728 | "
        "elapsed_time_per_iteration_ms=108893.2 | learning_rate=1.88743e-08 | global_batch_size=  "
        "768 | lm loss=11.133188 | loss_scale=1.0 | grad_norm=6.363 | actual_seqlen= 4096 | "
        "number_of_skipped_iterations=  1 | number_of_nan_iterations=  0 | "
        "samples_per_second=7.053 | [LM]-TFLOPs=49.66 |",
        "[2024-06-21 10:50:42][INFO][utils:190] - [Rank 0] (after 1 iterations) memory (MB) | "
        "allocated: 18243.64111328125 | max allocated: 50664.2548828125 | reserved: 54556.0 | "
        "max reserved: 54556.0",
    )
    (step,) = reading.steps
    assert (step.time_s, step.loss, step.grad_norm, step.samples, step.skipped) == (
        108.8932, 11.133188, 6.363, 768, True
    )  # fmt: skip
    assert reading.memory[0].peak_bytes == 54556 * MIB


def test_seconds_and_torchrun_labels() -> None:
    """HelmholtzAI and bigscience chronicles."""
    reading = read(
        "megatron",
        "[default3]: iteration       10/ 3125000 | consumed samples:          960 | elapsed time "
        "per iteration (s): 7.2310 | learning rate: 4.438E-07 | global batch size:    96 | lm loss:"
        " 1.010967E+01 | loss scale: 4096.0 | grad norm: 178.553 | number of skipped iterations:"
        "   0 | number of nan iterations:   0 | samples per second: 13.276 | TFLOPs: 101.54 |",
    )
    assert times(reading) == [(10, 7.231)]


def test_primus_prints_the_mean_so_far_too() -> None:
    """AMD-AGI/Primus, with its colours."""
    reading = read(
        "megatron",
        "[\x1b[32m20251202 06:56:28\x1b[0m][\x1b[36mrank-7/8\x1b[0m][\x1b[1mINFO \x1b[0m] \x1b[1m"
        "[--------trainer.py:2560] : iteration 4408/ 5000 | consumed samples: 564224 | elapsed "
        "time per iteration (ms): 13100.0/13240.9 | hip mem usage/free/total/usage_ratio: "
        "153.81GB/102.17GB/255.98GB/60.09% | throughput per GPU (TFLOP/s/GPU): 579.4/573.6 | "
        "learning rate: 3.421949E-07 | global batch size: 128 | lm loss: 4.142716E-03 | loss scale:"
        " 1.0 | grad norm: 0.003 | number of skipped iterations: 0 | number of nan iterations: 0 |"
        "\x1b[0m",
    )
    assert times(reading) == [(4408, 13.1)]


def test_nanotron_writes_thousands_with_a_letter() -> None:
    """huggingface/nanotron issues 390 and 405."""
    reading = read(
        "megatron",
        "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: "
        "85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | "
        "tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | "
        "model_tflops_per_gpu: 38.3 | hardware_tflops_per_gpu: 38.3 | grad_norm: nan",
        "07/03 07:57:21 [INFO|PP=1]: iteration: 327282 / 378950 | consumed_tokens: 65.5K | "
        "time_per_iteration_ms: 272 | tokens_per_sec: 9.33K | tokens_per_sec_per_gpu: 4.66K | "
        "global_batch_size: 65.5K | grad_norm: 6.4 | lm_loss: 12.1 | lr: 0.00015",
    )
    assert times(reading) == [(327281, 11.5), (327282, 0.272)]
    assert [step.loss for step in reading.steps] == [2.38, 12.1]
    assert math.isnan(reading.steps[0].grad_norm or 0)
    assert reading.steps[1].grad_norm == 6.4


def test_a_gradient_that_is_no_number_while_the_loss_is_missing() -> None:
    """bigscience-workshop/Megatron-DeepSpeed issue 396."""
    reading = read(
        "megatron",
        " iteration     5426/  250000 | consumed samples:        43408 | consumed tokens:     "
        "88899584 | elapsed time per iteration (ms): 4247.9 | learning rate: 2.999E-04 | global "
        "batch size:     8 | loss scale: 1.0 | grad norm: nan | actual seqlen:  2048 | number of "
        "skipped iterations:   0 | number of nan iterations:   0 | samples per second: 1.883 | "
        "TFLOPs: 78.36 |",
    )
    (step,) = reading.steps
    assert step.time_s == 4.2479
    assert step.loss is None
    assert math.isnan(step.grad_norm or 0)


def test_mindspeed_mm_prints_a_loss_that_is_no_number() -> None:
    reading = read(
        "megatron",
        "[Rank 0 | Local Rank 0] 2026-11-29 19:15:55,373 INFO [mindspeed_mm.fsdp.train.train_engine"
        ":48] =>  [2026-11-29 19:15:55] iteration        1/       4 | consumed samples:            "
        "4 | elapsed time per iteration (ms): 622.6 | learning rate: 1.000000E-04 | global batch "
        "size:     4 | loss: NAN | aux loss: 1.000000E-02 |",
    )
    (step,) = reading.steps
    assert math.isnan(step.loss or 0)


def test_mindspeed_mm_autoencoders() -> None:
    """`models/ae/training/training.py`: seconds, two losses in turns, nothing on skipped steps."""
    reading = read(
        "megatron",
        " [2025-03-01 10:00:00] iteration        7/     100 | elapsed time per iteration (s): "
        "0.812345 | learning rate: 1.000000E-05 | generator     loss: 1.234000E+00 | loss scale: "
        "65536.0 |",
    )
    assert times(reading) == [(7, 0.812345)]
    assert reading.steps[0].loss == 1.234


def test_the_first_iteration_may_have_a_line_of_its_own() -> None:
    """Since 2025 Megatron-LM prints iteration 1 whatever the interval, and goes on counting."""

    def line(step: int) -> str:
        return (
            f" iteration {step}/ 100 | elapsed time per iteration (ms): 10.0 | "
            "number of skipped iterations:   0 |"
        )

    def over(*steps: int) -> list[int | None]:
        return [s.averaged_over for s in read("megatron", *map(line, steps)).steps]

    assert over(1, 10, 20, 30) == [1, 10, 10, 10]
    assert over(1, 10) == [1, 10]
    assert over(10, 20, 40, 50) == [10, 10, 10, 10]
    assert over(1, 2, 4, 5) == [1, 1, 1, 1]
    assert over(29013, 29020, 29030) == [7, 7, 7]
    assert over(3) == [None]


def test_memory_lines_that_ran_into_each_other() -> None:
    """Two of eight ranks, as infini-ai's guide to 4090s shows them; core_v0.15 rounds."""
    reading = read(
        "megatron",
        "[Rank 2] (after 1 iterations) memory (MB) | allocated: 9334.3779296875 | max allocated: "
        "12680.6357421875 | reserved: 13236.0 | max reserved: 13236.0[Rank 6] (after 1 iterations) "
        "memory (MB) | allocated: 10850.67578125 | max allocated: 10850.70751953125 | reserved: "
        "11000.0 | max reserved: 11000.0",
        "",
        "[Rank 5] (after 1 iterations) memory (MB) | allocated: 36891.15 | max allocated: 44566.31 "
        "| reserved: 44816.00 | max reserved: 44816.00 | total device memory used: 46000.50",
    )
    assert [(m.rank, m.peak_reserved_bytes) for m in reading.memory] == [
        (2, 13236 * MIB),
        (6, 11000 * MIB),
        (5, 44816 * MIB),
    ]
    assert reading.memory[2].peak_bytes == 46000.5 * MIB


@pytest.mark.parametrize(
    "line",
    [
        " validation loss at iteration 5 | lm loss value: 5.314413E+00 | lm loss PPL: 2.03E+02 | ",
        "[2026-11-29 19:15:55] ** validation after iteration 4 ** | validation steps: 2 | "
        "validation loss: 6.25E+00 |",
        "(min, max) time across ranks (ms):",
        "    forward-backward ...............................: (106622.81, 106624.28)",
        "time (ms) | forward-compute: 32054.16 | backward-compute: 87380.53 | optimizer: 342.01",
        "saving checkpoint at iteration     100 to /root/GPT2 in torch_dist format",
        "  log_interval .................................... 1",
        "Theoretical memory footprints: weight and optimizer=2121.85 MB",
        "Running validation at iteration 4...",
        "iteration 3/100",
        "now at iteration 3/ 100 with a loss of 2.5",
        "elapsed time per iteration (ms): 250.5",
    ],
)
def test_lines_that_are_no_steps(line: str) -> None:
    reading = read("megatron", line)
    assert (reading.steps, reading.memory) == ((), ())


def test_an_iteration_without_a_time_is_no_step() -> None:
    reading = read("megatron", " iteration 3/ 100 | lm loss: 2.5E+00 | learning rate: 1.0E-04 |")
    assert reading.steps == ()
    assert reading.cut_lines == 1
