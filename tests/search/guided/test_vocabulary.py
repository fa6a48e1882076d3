"""Which way memory goes, by the names that training programs use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from autotune.search.guided.vocabulary import memory_slopes
from autotune.space.definition import Parameter


def direction(name: str, **rest: Any) -> float:
    return float(np.sign(slope(name, **rest)))


def slope(name: str, **rest: Any) -> float:
    entry = {"choices": [1, 2, 4], "ordered": True, **rest}
    return float(memory_slopes([Parameter.parse(name, entry)])[0])


@pytest.mark.parametrize(
    "name",
    [
        "micro_batch_size",  # Megatron-LM, MindSpeed-MM, NeMo
        "seq_length",
        "train_micro_batch_size_per_gpu",  # DeepSpeed
        "per_device_train_batch_size",  # Hugging Face
        "mbs",
        "MicroBatchSize",
    ],
)
def test_more_takes_more(name: str) -> None:
    assert direction(name) == 1


@pytest.mark.parametrize(
    "name",
    [
        "tensor_model_parallel_size",  # Megatron-LM, MindSpeed-MM, NeMo
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "model_parallel_size",  # DeepSpeed
        "pipe_parallel_size",
        "zero_stage",
        "ep_size",
        "tp_degree",  # Accelerate
        "pp_degree",
        "tp_size",
        "cp_size",
        "sp_size",
        "dp_shard_size",
        "sp_degree",  # as in docs/design.md
        "TP",
        "tensorParallelSize",
    ],
)
def test_more_takes_less(name: str) -> None:
    assert direction(name) == -1


@pytest.mark.parametrize(
    "name",
    [
        "data_parallel_size",
        "global_batch_size",
        "gradient_accumulation_steps",
        "virtual_pipeline_model_parallel_size",
        "num_workers",
        "bucket_mb",
        "loss_chunk_size",
        "temperature",
        "step",
        "recompute",
    ],
)
def test_other_names_tell_nothing(name: str) -> None:
    assert direction(name) == 0


def test_the_space_file_has_the_last_word() -> None:
    assert direction("tensor_model_parallel_size", memory="increases") == 1
    assert direction("micro_batch_size", memory="decreases") == -1
    assert direction("loss_chunk_size", memory="increases") == 1
    assert direction("kind", ordered=False, memory="decreases") == -1


def test_the_names_of_unordered_parameters_tell_nothing() -> None:
    assert direction("tensor_model_parallel_size", ordered=False) == 0


def test_choices_from_large_to_small_turn_the_name_round() -> None:
    """`memory:` goes from the first choice to the last, so a name's direction must too."""
    assert direction("micro_batch_size", choices=[8, 4, 2, 1]) == -1
    assert direction("tp", choices=[8, 4, 2, 1]) == 1
    assert direction("tp", choices=[8, 4, 2, 1], memory="decreases") == -1


@pytest.mark.parametrize("choices", [[1, 2, 4], [4, 2, 1], [2, 4, 8], [1, 3, 4]])
def test_memory_goes_with_the_number(choices: list[int]) -> None:
    """From the middle of a fourfold range to its end it doubles, or halves."""
    sign = 1 if choices[-1] > choices[0] else -1
    assert slope("micro_batch_size", choices=choices) == pytest.approx(sign * math.log(2))
    assert slope("tp", choices=choices) == pytest.approx(-sign * math.log(2))


@pytest.mark.parametrize("choices", [[0, 4], [0, 2, 3, 5], [False, True], ["none", "some", "all"]])
def test_choices_that_are_no_factors_tell_the_direction_and_little_more(choices: list[Any]) -> None:
    """Of five blocks that are offloaded none may be five times better than any."""
    assert slope("offload_blocks", choices=choices, memory="decreases") == -0.25


def test_a_slope_for_each_parameter() -> None:
    entries = {"pp": {"choices": [1, 2], "ordered": True}, "kind": {"choices": ["a", "b"]}}
    parameters = [Parameter.parse(name, entry) for name, entry in entries.items()]
    assert memory_slopes(parameters) == pytest.approx([-math.log(2) / 2, 0])


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([1, 2, 4], math.log(4) / 2),
        ([1e-300, 1e270], math.log(1e6) / 2),  # their ratio is beyond floats
        ([1, 10**400], math.log(1e6) / 2),
        ([10**400, 3 * 10**400], math.log(3) / 2),
        ([5e-324, 1e-323], math.log(2) / 2),
        ([1, math.inf], 0.25),
        ([1, math.nan], 0.25),
    ],
    ids=range(7),
)
def test_numbers_of_any_size_have_a_slope(choices: list[float], expected: float) -> None:
    parameter = Parameter("micro_batch_size", tuple(choices), ordered=True)
    assert memory_slopes([parameter])[0] == pytest.approx(expected)
