"""What MindSpeed-MM's Megatron backends refuse, and what they take and get wrong.

Sources, at the commits in docs/mindspeed_mm.md: mindspeed_mm/patchs/validate_args_patch.py,
MindSpeed's features_manager, Megatron-LM's parallel_state.py, schedules.py and
transformer_config.py, the models of mindspeed_mm/models. Those marked "not checked there" start,
and fail later or do other work than was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space.definition import Rule
from launch.trainers.mindspeed.degrees import RING, ULYSSES
from launch.trainers.mindspeed.megatron_hetero_rules import hetero_rules
from launch.trainers.mindspeed.megatron_memory_rules import memory_rules
from launch.trainers.mindspeed.megatron_models import DIFFUSION, VISION_LANGUAGE, MegatronSupport
from launch.trainers.mindspeed.megatron_samples import BUCKET_COLLATORS, GROUPED

_WORLD = "cluster.world_size"
_RANKS = "(tensor_parallel_size * pipeline_parallel_size * sp_degree)"
_MICRO_BATCHES = f"(model.global_batch_size * {_RANKS} // ({_WORLD} * micro_batch_size))"
_STAGES = "(pipeline_parallel_size * virtual_pipeline_size)"


def rules_for(
    kind: str, fsdp2: bool, support: MegatronSupport, dims: Mapping[str, Any], knows_experts: bool
) -> tuple[Rule, ...]:
    """The rules of a model. dims: figures that are known; a rule about others is left out.

    knows_experts: the backend takes a degree of expert parallelism.
    """
    return (
        *_layout(),
        *_sequence_parallelism(kind, support, dims),
        *_heads(kind, dims),
        *(_fsdp2() if fsdp2 else _tensor_and_pipeline(kind, support, dims)),
        *(_experts(dims) if knows_experts else ()),
        *(hetero_rules(dims) if kind == VISION_LANGUAGE and not fsdp2 else ()),
        *memory_rules(kind, fsdp2, support, dims),
        *_samples(),
    )


def _layout() -> Sequence[Rule]:
    return (
        Rule.of(
            f"{_WORLD} % {_RANKS} == 0",
            "tensor, pipeline and sequence parallelism together divide the number of ranks",
        ),
        Rule.of(
            f"model.global_batch_size * {_RANKS} % ({_WORLD} * micro_batch_size) == 0",
            "the global batch is a whole number of micro-batches on every rank",
        ),
    )


def _sequence_parallelism(
    kind: str, support: MegatronSupport, dims: Mapping[str, Any]
) -> Sequence[Rule]:
    rules = [
        Rule.of(
            "sp_degree == 1 or sp_algorithm != 'usp' or sp_degree % ulysses_degree == 0 "
            "and ulysses_degree < sp_degree",
            "USP is a ring of more than one around its Ulysses groups",
        ),
        Rule.of(
            f"{RING} == 1 or ring_window < {RING} and {RING} % ring_window == 0",
            "the inner ring is smaller than the ring and divides it",
        ),
    ]
    if "checked_seq_length" in dims:
        rules.append(
            Rule.of(
                "sp_degree == 1 or model.checked_seq_length % (2 * sp_degree) == 0",
                "the sequence length that is checked (a diffusion model's is 3072, whatever its "
                "video's) is a multiple of twice the SP degree, whatever the algorithm",
            )
        )
    mask = "general" if kind == DIFFUSION else "causal"
    rules.append(
        Rule.of(
            f"{RING} == 1 or attention_mask == '{mask}'",
            f"a ring takes the mask of --attention-mask-type, which must be {mask} for this "
            "model (not checked there: another mask, another loss)",
        )
    )
    if not support.algorithms:
        rules.append(
            Rule.of(
                "sp_degree == 1",
                "the model has no sequence parallelism (not checked there: ranks repeat the work)",
            )
        )
    else:
        rules.append(
            Rule.of(
                f"sp_degree == 1 or sp_algorithm in {list(support.algorithms)}",
                f"the model has {', '.join(support.algorithms)} alone",
            )
        )
    return rules


def _heads(kind: str, dims: Mapping[str, Any]) -> Sequence[Rule]:
    rules = []
    if "num_heads" in dims:
        rules.append(
            Rule.of(
                f"{ULYSSES} == 1 or model.num_heads % ({ULYSSES} * tensor_parallel_size) == 0",
                "Ulysses splits the attention heads that tensor parallelism leaves",
            )
        )
    if kind == VISION_LANGUAGE:
        for prefix, name in (("encoder", "image encoder"), ("audio", "audio encoder")):
            if f"{prefix}_num_heads" in dims:
                rules.append(
                    Rule.of(
                        f"hetero_parallel or {ULYSSES} == 1 or model.{prefix}_num_heads % "
                        f"({ULYSSES} * tensor_parallel_size) == 0",
                        f"Ulysses splits the attention heads of the {name} too",
                    )
                )
    if "num_kv_heads" in dims and kind != DIFFUSION:
        held = "(model.num_kv_heads // tensor_parallel_size)"
        rules.append(
            Rule.of(
                f"sp_degree > {held} or {held} % {ULYSSES} == 0",
                "Ulysses splits the key and value heads evenly, where they are not fewer than the "
                "SP degree and repeated (not checked there)",
            )
        )
    return rules


def _tensor_and_pipeline(
    kind: str, support: MegatronSupport, dims: Mapping[str, Any]
) -> Sequence[Rule]:
    rules = [
        Rule.of(
            f"{_STAGES} == 1 or pipeline_split == 'even' or len(pipeline_split) == {_STAGES}",
            "pipeline_split names the layers of every stage, round after round",
        ),
        Rule.of(
            "virtual_pipeline_size == 1 or pipeline_parallel_size > least_interleaved",
            "virtual stages need a pipeline of two, or of three without the overlap of its "
            "communication",
        ),
        Rule.of(
            f"virtual_pipeline_size == 1 or {_MICRO_BATCHES} % pipeline_parallel_size == 0",
            "with virtual stages the micro-batches of a step come in groups of the pipeline's "
            "size (not checked there before the first step)",
        ),
        Rule.of(
            "not overlap_param_gather or distributed_optimizer and overlap_grad_reduce",
            "gathering parameters in the background needs the distributed optimizer and the "
            "overlap of gradient reduction",
        ),
    ]
    if "num_layers" in dims:
        rules.append(
            Rule.of(
                f"pipeline_split != 'even' or model.num_layers >= {_STAGES}",
                "every stage of the pipeline has a layer at least (not checked there)",
            )
        )
    if not support.tensor:
        reason = "the model cannot be split by tensors (not checked there: it fails in a norm)"
        rules.append(Rule.of("tensor_parallel_size == 1", reason))
    else:
        rules += _tensor_sizes(dims)
    if not support.pipeline:
        rules.append(Rule.of(f"{_STAGES} == 1", "the model cannot be split into a pipeline"))
    if kind == DIFFUSION:
        rules += [
            Rule.of(
                "not encoder_data_parallel or pipeline_parallel_size == 1",
                "enable_encoder_dp in the model file rules a pipeline out",
            ),
            Rule.of(
                "not layerzero or layerzero_size != None", "layerzero needs --layerzero-config"
            ),
            Rule.of(
                f"not layerzero or {_WORLD} // pipeline_parallel_size % "
                f"min(layerzero_size, {_WORLD} // pipeline_parallel_size) == 0",
                "zero3_size of the LayerZero file divides the ranks of a stage",
            ),
        ]
    return rules


def _tensor_sizes(dims: Mapping[str, Any]) -> Sequence[Rule]:
    decoder = {
        "num_heads": "attention heads",
        "num_kv_heads": "key and value heads",
        "ffn_size": "width of the feed-forward layers",
        "vocab_size": "vocabulary",
    }
    encoders = {
        f"{prefix}_{key}": f"{what} of the {name}"
        for prefix, name in (("encoder", "image encoder"), ("audio", "audio encoder"))
        for key, what in (("num_heads", "attention heads"), ("ffn_size", "width"))
    }
    split = [
        Rule.of(
            f"model.{key} % tensor_parallel_size == 0",
            f"tensor parallelism divides the decoder's {what}",
        )
        for key, what in decoder.items()
        if key in dims
    ]
    return [
        *split,
        *(
            Rule.of(
                f"hetero_parallel or model.{key} % tensor_parallel_size == 0",
                f"tensor parallelism divides the {what}",
            )
            for key, what in encoders.items()
            if key in dims
        ),
    ]


def _fsdp2() -> Sequence[Rule]:
    return (
        Rule.of(
            "pipeline_parallel_size == 1 and expert_parallel_size == 1",
            "--use-torch-fsdp2 rules pipeline and expert parallelism out",
        ),
        Rule.of(
            "tensor_parallel_size == 1",
            "--use-torch-fsdp2 goes without tensor parallelism (checked there for torch_dcp alone)",
        ),
        Rule.of(
            f"fsdp_size == 'auto' or {_WORLD} % fsdp_size == 0",
            "the FSDP shard divides the number of ranks",
        ),
        Rule.of(
            "not distributed_optimizer", "--use-torch-fsdp2 rules --use-distributed-optimizer out"
        ),
        Rule.of(
            f"{RING} == 1 or ring_layout", "ring attention needs attn_layout TND in both modules"
        ),
    )


def _experts(dims: Mapping[str, Any]) -> Sequence[Rule]:
    if "num_experts" not in dims:
        return (Rule.of("expert_parallel_size == 1", "the model has no experts"),)
    return (
        Rule.of(
            "model.num_experts % expert_parallel_size == 0",
            "expert parallelism divides the experts",
        ),
        Rule.of(
            f"{_WORLD} % (tensor_parallel_size * expert_parallel_size * pipeline_parallel_size)"
            " == 0",
            "expert, tensor and pipeline parallelism together divide the number of ranks",
        ),
    )


def _samples() -> Sequence[Rule]:
    return (
        Rule.of(
            f"bucket_order == 'none' or collator in {list(BUCKET_COLLATORS)}",
            "the bucket sampler knows the collators " + " and ".join(BUCKET_COLLATORS) + " alone "
            "(not checked there: it fails at the first batch)",
        ),
        Rule.of(
            f"length_grouping == 'none' or sampler == '{GROUPED}'",
            f"groups of like samples need the {GROUPED} in the base, whose data tell their sizes",
        ),
    )
