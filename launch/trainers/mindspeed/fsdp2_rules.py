"""What MindSpeed-MM's native FSDP2 trainer refuses, and what it takes and gets wrong.

Source: fsdp/params/parallel_args.py, fsdp/ops/flash_attn/flash_attn.py, fsdp/features at commit
57069cd5. Those marked "not checked there" it takes without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space.definition import Rule
from launch.trainers.mindspeed.degrees import RING, ULYSSES
from launch.trainers.mindspeed.models import ModelSupport

_WORLD = "cluster.world_size"


def rules_for(support: ModelSupport, dims: Mapping[str, Any], device: str) -> tuple[Rule, ...]:
    """The rules of a model. dims: figures that are known; a rule about others is left out."""
    return (
        *_layout(),
        *_sequence_parallelism(support, device),
        *_heads(support, dims),
        *_experts(dims),
        *_features(support),
    )


def _layout() -> Sequence[Rule]:
    return (
        Rule.of(f"{_WORLD} % sp_degree == 0", "the SP degree divides the number of ranks"),
        Rule.of(
            f"fsdp_size == 'auto' or {_WORLD} % fsdp_size == 0",
            "the FSDP shard divides the number of ranks",
        ),
        Rule.of(
            "fsdp_size == 'auto' or fsdp_size % sp_degree == 0",
            "the FSDP shard holds whole SP groups (not checked there: groups shrink silently)",
        ),
        Rule.of("micro_batch_size >= 1", "a micro-batch holds at least one sample"),
        Rule.of(
            f"model.global_batch_size * sp_degree % ({_WORLD} * micro_batch_size) == 0",
            "the global batch is a whole number of micro-batches on every rank",
        ),
        Rule.of("forward_prefetch >= 0 and backward_prefetch >= 0", "prefetch counts from 0"),
    )


def _sequence_parallelism(support: ModelSupport, device: str) -> Sequence[Rule]:
    rules = [
        Rule.of(
            "sp_algorithm != 'usp' or sp_degree % ulysses_degree == 0 "
            "and 1 < ulysses_degree and ulysses_degree < sp_degree",
            "USP is a ring of more than one around its Ulysses groups",
        ),
        Rule.of(
            "sp_degree == 1 or attn_implementation in ['flash_attention_2', 'flash_attention_3']",
            "sequence parallelism is in the flash attention alone (not checked there: sdpa and "
            "eager give a wrong loss)",
        ),
        Rule.of(
            f"{RING} == 1 or attn_implementation == 'flash_attention_2'",
            "ring attention is in flash_attention_2 alone",
        ),
        Rule.of(
            "pad_to_multiple_of % sp_degree == 0",
            "sequences are padded to a multiple of the SP degree: raise "
            "data.dataloader_param.collate_param.pad_to_multiple_of in the base",
        ),
        Rule.of(
            f"{RING} == 1 or pad_to_multiple_of % (2 * sp_degree) == 0",
            "a ring takes two chunks of a sequence a rank: raise "
            "data.dataloader_param.collate_param.pad_to_multiple_of in the base",
        ),
        Rule.of(
            f"{RING} == 1 or not skip_flash_attention_recompute",
            "ring attention cannot skip the recomputation of flash attention",
        ),
    ]
    if not support.algorithms:
        reason = "the model has no sequence parallelism (not checked there: ranks repeat the work)"
        rules.append(Rule.of("sp_degree == 1", reason))
    elif "ring" not in support.algorithms:
        rules.append(
            Rule.of(
                "sp_degree == 1 or sp_algorithm == 'ulysses'",
                "the model has Ulysses alone (not checked there)",
            )
        )
    if device != "npu":
        rules.append(Rule.of(f"{RING} == 1", "ring attention runs on NPUs alone"))
    return rules


def _heads(support: ModelSupport, dims: Mapping[str, Any]) -> Sequence[Rule]:
    if not support.algorithms:
        return ()
    rules = []
    if "num_heads" in dims:
        rules.append(
            Rule.of(f"model.num_heads % {ULYSSES} == 0", "Ulysses splits the attention heads")
        )
    if "num_kv_heads" in dims:
        rules.append(
            Rule.of(
                f"model.num_kv_heads % {ULYSSES} == 0 or {ULYSSES} % model.num_kv_heads == 0",
                "Ulysses splits the key and value heads, or repeats them evenly (fewer than "
                "Ulysses ranks: checked there; more: not)",
            )
        )
    if "encoder_num_heads" in dims:
        rules.append(
            Rule.of(
                f"model.encoder_num_heads % {ULYSSES} == 0",
                "Ulysses splits the attention heads of the vision tower too",
            )
        )
    if support.linear_attention and "linear_num_key_heads" in dims:
        rules.append(
            Rule.of(
                f"model.linear_num_key_heads % {ULYSSES} == 0 "
                f"and model.linear_num_value_heads % {ULYSSES} == 0",
                "Ulysses splits the heads of the linear attention",
            )
        )
    return rules


def _experts(dims: Mapping[str, Any]) -> Sequence[Rule]:
    rules = [
        Rule.of(f"{_WORLD} % expert_parallel_size == 0", "expert parallelism divides the ranks"),
        Rule.of(
            "expert_parallel_size == 1 or expert_fsdp_size == None "
            f"or {_WORLD} == expert_parallel_size * expert_fsdp_size",
            "expert parallelism and the base's expert_fully_shard_parallel_size make up the ranks",
        ),
        Rule.of(
            "expert_parallel_size == 1 or expert_modules > 0",
            "expert parallelism needs parallel.ep_plan.apply_modules in the base",
        ),
        Rule.of("expert_dispatcher != 'mc2' or fused_ops", "mc2 needs the fused operators"),
        Rule.of(
            "expert_dispatcher == 'alltoall' or not ep_balance",
            "balancing experts works with alltoall alone",
        ),
    ]
    if "num_experts" in dims:
        rules.append(
            Rule.of(
                "model.num_experts % expert_parallel_size == 0",
                "expert parallelism divides the experts",
            )
        )
    elif "num_layers" in dims:  # the model's config.json is known, and tells of none
        rules.append(Rule.of("expert_parallel_size == 1", "the model has no experts"))
    return rules


def _features(support: ModelSupport) -> Sequence[Rule]:
    rules = [
        Rule.of(
            "not recompute or recompute_modules != None",
            "recomputation needs features.recompute_plan.apply_modules",
        ),
        Rule.of(
            "not activation_offload or offload_modules != None",
            "offload needs features.activation_offload_plan.apply_modules",
        ),
        Rule.of(
            "loss_chunk == 'none' or loss_type != 'raw'",
            "chunk loss takes the place of the model's own loss (loss_type raw)",
        ),
        Rule.of(
            "loss_chunk != 'static' or loss_chunk_size >= 1",
            "a chunk of the loss holds at least one token",
        ),
        Rule.of(
            "loss_chunk != 'dynamic' or loss_total_chunk_size >= micro_batch_size",
            "a dynamic chunk of the loss holds at least one token a sample",
        ),
        Rule.of(
            "not chunk_micro_batches "
            "or chunk_mbs >= 1 and (chunk_mbs < micro_batch_size or base_cuts_nothing)",
            "micro-batches are cut into smaller ones (not checked there: no effect)",
        ),
        Rule.of(
            "not chunk_micro_batches or recompute and activation_offload",
            "cutting micro-batches needs recomputation and offload of the same modules",
        ),
    ]
    if support.linear_attention:
        rules.append(
            Rule.of(
                "gdn_implementation != 'eager' or not (recompute and activation_offload "
                "and (skip_flash_attention_recompute or skip_linear_attention_recompute))",
                "recomputation of attention is skipped in fused linear attention alone "
                "(model.gdn_implementation)",
            )
        )
    if not support.chunk_loss:
        rules.append(Rule.of("loss_chunk == 'none'", "the model's loss cannot be taken in chunks"))
    return rules
