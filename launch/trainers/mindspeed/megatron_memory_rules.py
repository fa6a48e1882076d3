"""Rules of recomputation, offload and chunks of the loss, of the Megatron backends.

Source: mindspeed_mm/models/predictor/dits/wan_dit.py, models/transformers_model.py,
models/transformers/base_model.py, MindSpeed/mindspeed/core/transformer/transformer_config.py and
core/memory/common.py at the commits in docs/mindspeed_mm.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space.definition import Rule
from launch.trainers.mindspeed.megatron_models import (
    DIFFUSION,
    TRANSFORMERS,
    VISION_LANGUAGE,
    MegatronSupport,
)

_STAGES = "(pipeline_parallel_size * virtual_pipeline_size)"


def memory_rules(
    kind: str, fsdp2: bool, support: MegatronSupport, dims: Mapping[str, Any]
) -> tuple[Rule, ...]:
    """The rules of a kind of model. dims: figures that are known."""
    rules: list[Rule] = []
    if kind == DIFFUSION:
        rules += _diffusion(support, dims)
    if kind == VISION_LANGUAGE and not fsdp2:
        rules += _decoder(dims)
    if kind == TRANSFORMERS:
        rules += _transformers(support)
    if fsdp2:
        rules.append(
            Rule.of(
                "recompute == 'none' or recompute_modules == None",
                "recompute_modules and --recompute-granularity would recompute twice (not checked "
                "there)",
            )
        )
    return tuple(rules)


def _diffusion(support: MegatronSupport, dims: Mapping[str, Any]) -> Sequence[Rule]:
    if not support.recompute:
        return [
            Rule.of(
                "recompute == 'none'",
                "the model does not heed --recompute-granularity (not checked there: no effect)",
            ),
            *_without_offload(),
        ]
    rules = [
        Rule.of("recompute != 'selective'", "diffusion transformers refuse selective recompute"),
        Rule.of(
            "recompute != 'full' or recompute_method != None",
            "full recomputation needs a method (not checked there before the first step)",
        ),
        Rule.of(
            "recompute != 'full' or recompute_method != 'uniform' or recompute_layers == 1",
            "the uniform method recomputes layer by layer (not checked there: of a larger group "
            "all but the last layer are left out of the model)",
        ),
    ]
    if not support.skips_attention:
        return [*rules, *_without_offload()]
    rules.append(
        Rule.of(
            "not activation_offload or recompute == 'full' and recompute_method == 'block' "
            "and skip_attention_layers > 0",
            "activations are offloaded in the layers whose attention is not recomputed: block, "
            "with skip_attention_layers (not checked there: no effect)",
        )
    )
    if "num_layers" in dims:
        rules.append(
            Rule.of(
                "not activation_offload or recompute_layers < (model.num_layers if "
                "pipeline_parallel_size == 1 or pipeline_split == 'even' else "
                "max(pipeline_split))",
                "recomputation leaves no layer whose attention could be offloaded (not checked "
                "there: no effect)",
            )
        )
    return rules


def _without_offload() -> Sequence[Rule]:
    return (
        Rule.of(
            "not activation_offload and skip_attention_layers == 0",
            "the model cannot leave attention out of recomputation or offload it",
        ),
    )


def _decoder(dims: Mapping[str, Any]) -> Sequence[Rule]:
    rules = [
        Rule.of(
            "recompute != 'full' or recompute_method != None and recompute_layers != None",
            "full recomputation needs a method and a number of layers",
        ),
        Rule.of("not swap_attention or not lora", "swap_attention does not go with LoRA"),
    ]
    if "num_layers" in dims:
        rules += [
            Rule.of(
                "recompute == 'none' or model.num_layers % virtual_pipeline_size == 0",
                "with recomputation the number of rounds divides the layers",
            ),
            # Other splits are known to the point alone, whose parts a rule cannot look at.
            Rule.of(
                "recompute != 'full' or recompute_method != 'uniform' or recompute_layers == 1 or "
                f"recompute_layers > 1 and (pipeline_split == 'even' or {_STAGES} == 1) and "
                f"model.num_layers % ({_STAGES} * recompute_layers) == 0",
                "the uniform method recomputes whole groups of a stage's layers (not checked "
                "there before the first step; with a pipeline_split that is not even: one layer)",
            ),
        ]
    return rules


def _transformers(support: MegatronSupport) -> Sequence[Rule]:
    rules = [
        Rule.of(
            "loss_chunk != 'dynamic' or loss_total_chunk_size > micro_batch_size",
            "a dynamic chunk of the loss holds at least one token a sample (not checked there: "
            "chunks of one token)",
        )
    ]
    if not support.chunk_loss:
        rules.append(Rule.of("loss_chunk == 'none'", "the model's loss cannot be taken in chunks"))
    if not support.offload:
        rules.append(Rule.of("not activation_offload", "the model has no offload of its own"))
    return rules
