"""Parameters of the search <-> keys of the native FSDP2 trainer's YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launch.trainers.documents import key_path
from launch.trainers.mindspeed.choices import (
    MODULES,
    SIZE,
    SIZE_OR_AUTO,
    SWITCH,
    WHOLE,
    Values,
    one_of,
)
from launch.trainers.mindspeed.degrees import ALGORITHMS, degrees_of, group_sizes


@dataclass(frozen=True)
class Knob:
    """A parameter that is one key. default: what the trainer takes where the key is absent."""

    key: str
    values: Values
    default: Any


# Source of keys and defaults: fsdp/params/*.py; of what they do: the facts in docs/mindspeed_mm.md.
KNOBS: Mapping[str, Knob] = {
    "micro_batch_size": Knob("training.micro_batch_size", SIZE, 1),
    "fsdp_size": Knob("parallel.fully_shard_parallel_size", SIZE_OR_AUTO, "auto"),
    "reshard_after_forward": Knob("parallel.fsdp_plan.reshard_after_forward", SWITCH, True),
    "forward_prefetch": Knob("parallel.fsdp_plan.num_to_forward_prefetch", WHOLE, 0),
    "backward_prefetch": Knob("parallel.fsdp_plan.num_to_backward_prefetch", WHOLE, 0),
    "pregather": Knob("parallel.fsdp_plan.pregather", SWITCH, False),
    "expert_parallel_size": Knob("parallel.expert_parallel_size", SIZE, 1),
    "expert_dispatcher": Knob(
        "parallel.ep_plan.dispatcher", one_of("alltoall", "allgather", "mc2"), "alltoall"
    ),
    "recompute": Knob("features.recompute", SWITCH, False),
    "recompute_modules": Knob("features.recompute_plan.apply_modules", MODULES, None),
    "activation_offload": Knob("features.enable_activation_offload", SWITCH, False),
    "offload_modules": Knob("features.activation_offload_plan.apply_modules", MODULES, None),
    "loss_chunk_size": Knob("features.chunkloss_plan.chunk_size", WHOLE, 1024),
    "loss_total_chunk_size": Knob("features.chunkloss_plan.total_chunk_size", WHOLE, 4096),
    "chunk_mbs": Knob("features.chunkmbs_plan.chunk_mbs", SIZE, 1),
    "optimizer": Knob("training.optimizer", one_of("adamw", "adamw_swap"), "adamw"),
    "dataloader_workers": Knob("data.dataloader_param.num_workers", WHOLE, 2),
    "dataloader_preload": Knob("data.dataloader_param.enable_preload", SWITCH, False),
    "skip_flash_attention_recompute": Knob("model.skip_flash_attn_recompute", SWITCH, False),
    "skip_linear_attention_recompute": Knob("model.skip_gdn_recompute", SWITCH, False),
}
# Parameters that are more than one key, and their choices.
SPECIAL: Mapping[str, Values] = {
    "sp_degree": SIZE,
    "sp_algorithm": one_of(*ALGORITHMS),
    "ulysses_degree": SIZE,
    "loss_chunk": one_of("none", "static", "dynamic"),
    "chunk_micro_batches": SWITCH,
}
VALUES: Mapping[str, Values] = {**{name: knob.values for name, knob in KNOBS.items()}, **SPECIAL}
"""What the choices of each parameter can be."""

_SKIPS = ("skip_flash_attention_recompute", "skip_linear_attention_recompute")
BASE_FACTS: Mapping[str, tuple[str, Any]] = {
    "attn_implementation": ("model.attn_implementation", "flash_attention_2"),
    "gdn_implementation": ("model.gdn_implementation", "eager"),
    "loss_type": ("features.loss_cfg.loss_type", "raw"),
    "pad_to_multiple_of": ("data.dataloader_param.collate_param.pad_to_multiple_of", 8),
    "ep_balance": ("features.enable_ep_balance", False),
    "fused_ops": ("parallel.ep_plan.use_npu_fused_ops", True),
    "expert_fsdp_size": ("parallel.expert_fully_shard_parallel_size", None),
}
"""What rules read of the base and no space varies: key and default."""

ACCUMULATION = "training.gradient_accumulation_steps"
_ULYSSES, _RING = "parallel.ulysses_parallel_size", "parallel.ring_attention_size"
_STATIC_CHUNKS, _DYNAMIC_CHUNKS = (
    "features.enable_chunk_loss",
    "features.enable_dynamic_chunk_loss",
)
_CHUNK_MBS = "features.enable_chunk_mbs"
_DEFAULTS: Mapping[str, Any] = {
    **{knob.key: knob.default for knob in KNOBS.values()},
    **dict(BASE_FACTS.values()),
    ACCUMULATION: 1,
    _ULYSSES: 1,
    _RING: 1,
    _STATIC_CHUNKS: False,
    _DYNAMIC_CHUNKS: False,
    _CHUNK_MBS: False,
}


def wrong_types(data: Mapping[str, Any]) -> Iterator[str]:
    """Keys of parameters whose value is of another type than the trainer takes."""
    kinds = {knob.key: knob.values.kinds for knob in KNOBS.values()}
    for key, kind in {**kinds, _ULYSSES: (int,), _RING: (int,), ACCUMULATION: (int,)}.items():
        value = value_at(data, key)
        if value is not None and type(value) not in kind:
            yield f"{key}={value!r}"


def values_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a YAML says for every parameter, and for what rules read besides."""
    static, dynamic = value_at(data, _STATIC_CHUNKS), value_at(data, _DYNAMIC_CHUNKS)
    return {
        **{name: value_at(data, knob.key) for name, knob in KNOBS.items()},
        **{name: value_at(data, key) for name, (key, _) in BASE_FACTS.items()},
        **degrees_of(value_at(data, _ULYSSES), value_at(data, _RING)),
        # Where both are on, the trainer takes the dynamic one.
        "loss_chunk": "dynamic" if dynamic else "static" if static else "none",
        "chunk_micro_batches": value_at(data, _CHUNK_MBS),
    }


def value_at(data: Mapping[str, Any], key: str) -> Any:
    """What the trainer takes for a key, its default where the key is absent or null."""
    node: Any = data
    for part in key_path(key):
        node = node.get(part) if isinstance(node, Mapping) else None
    return _DEFAULTS.get(key) if node is None else node


def native_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Each key that parameters stand for, with its value. values: of every parameter."""
    ulysses, ring = group_sizes(values)
    # Skipping recomputation finds its layers by the wrappers of offload: without both it cannot be.
    skips = values["recompute"] and values["activation_offload"]
    return {
        _ULYSSES: ulysses,
        _RING: ring,
        _STATIC_CHUNKS: values["loss_chunk"] == "static",
        _DYNAMIC_CHUNKS: values["loss_chunk"] == "dynamic",
        _CHUNK_MBS: values["chunk_micro_batches"],
        **{knob.key: values[name] for name, knob in KNOBS.items()},
        **{KNOBS[name].key: values[name] and skips for name in _SKIPS},
    }


def accumulation(values: Mapping[str, Any], global_batch_size: int, world_size: int) -> int:
    """Micro-batches of a rank in one step, which hold the global batch at its size.

    At least 1, also for values that the rules exclude.
    """
    data_parallel = world_size // int(values["sp_degree"])
    samples = int(values["micro_batch_size"]) * data_parallel
    return max(1, global_batch_size // samples) if samples > 0 else 1
