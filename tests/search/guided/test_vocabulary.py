"""Which way memory goes, by the names that training programs use."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.search.guided.vocabulary import memory_directions
from autotune.space.definition import Parameter


def direction(name: str, **rest: Any) -> float:
    entry = {"choices": [1, 2, 4], "ordered": True, **rest}
    return float(memory_directions([Parameter.parse(name, entry)])[0])


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


def test_a_direction_for_each_parameter() -> None:
    entries = {"pp": {"choices": [1, 2], "ordered": True}, "kind": {"choices": ["a", "b"]}}
    parameters = [Parameter.parse(name, entry) for name, entry in entries.items()]
    assert memory_directions(parameters).tolist() == [-1, 0]
