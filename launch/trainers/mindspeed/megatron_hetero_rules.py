"""Rules of hetero-parallel: encoders with a layout of their own on the decoder's ranks.

The parameters of the model's parallelism are the decoder's here. Source:
mindspeed_mm/utils/hetero_parallel.py, hetero_utils/hetero_CP_utils.py,
patchs/hetero_pipeline_patches.py and validate_args_patch.py at commit 57069cd5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space.definition import Rule
from launch.trainers.mindspeed.megatron_modules import AUDIO, IMAGE

_WORLD = "cluster.world_size"
_DECODER = "(tensor_parallel_size * pipeline_parallel_size * sp_degree)"
_MICRO_BATCHES = f"(model.global_batch_size * {_DECODER} // ({_WORLD} * micro_batch_size))"
_PREFIXES: Mapping[str, str] = {IMAGE: "encoder", AUDIO: "audio"}


def hetero_rules(dims: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Rules for the encoders that `dims` tells of, and for the decoder between them."""
    rules = list(_decoder())
    for module, prefix in _PREFIXES.items():
        if f"{prefix}_num_heads" in dims:
            rules += _encoder(module, prefix, dims)
    return tuple(rules)


def _decoder() -> Sequence[Rule]:
    return (
        Rule.of(
            "not hetero_parallel or virtual_pipeline_size == 1",
            "virtual stages are given by the shell, whose pipeline is 1 with hetero_parallel",
        ),
        Rule.of(
            "not hetero_parallel or sp_degree == 1 or sp_algorithm == 'ulysses'",
            "hetero_parallel has Ulysses alone (not checked there before the model is built)",
        ),
        Rule.of(
            "not hetero_parallel or pipeline_parallel_size == 1 or frozen_encoders",
            "with a pipeline of the decoder hetero_parallel runs encoders forward alone, so they "
            "must be frozen (not checked there: they are not trained)",
        ),
        Rule.of(
            "encoder_micro_batch_scale == 1 or hetero_parallel and pipeline_parallel_size > 1",
            "larger micro-batches of the encoders need hetero_parallel and a pipeline of the "
            "decoder (not checked there: a step trains more samples)",
        ),
        Rule.of(
            f"encoder_micro_batch_scale == 1 or {_MICRO_BATCHES} % encoder_micro_batch_scale == 0",
            "encoders take whole groups of micro-batches (not checked there: a step trains fewer "
            "samples)",
        ),
    )


def _encoder(module: str, prefix: str, dims: Mapping[str, Any]) -> Sequence[Rule]:
    tensor, degree = f"{module}_tensor_parallel_size", f"{module}_sp_degree"
    ranks = f"({tensor} * {degree})"
    name = module.replace("_", " ")
    rules = [
        Rule.of(
            f"not hetero_parallel or {module}_pipeline_parallel_size == 1",
            f"the {name} has no pipeline of its own (not checked there: ranks wait for each other)",
        ),
        Rule.of(
            f"not hetero_parallel or {_DECODER} % {ranks} == 0",
            f"the ranks that hold the {name} divide those that hold the decoder (not checked "
            "there: outputs cannot be handed back)",
        ),
        Rule.of(
            f"not hetero_parallel or "
            f"micro_batch_size * encoder_micro_batch_scale * {ranks} % {_DECODER} == 0",
            f"samples of a micro-batch of all decoders are dealt out to the {name}'s replicas, at "
            "least one for each (not checked there)",
        ),
        Rule.of(
            f"not hetero_parallel or model.{prefix}_num_heads % {ranks} == 0",
            f"tensor parallelism and Ulysses divide the attention heads of the {name}",
        ),
    ]
    rules.append(
        Rule.of(
            f"not hetero_parallel or not sequence_parallel or tensor_parallel_size == 1 "
            f"or {tensor} > 1",
            f"sequence_parallel is of all modules, so the {name} needs tensor parallelism too",
        )
    )
    if f"{prefix}_ffn_size" in dims:
        rules.append(
            Rule.of(
                f"not hetero_parallel or model.{prefix}_ffn_size % {tensor} == 0",
                f"tensor parallelism divides the width of the {name}",
            )
        )
    return rules
