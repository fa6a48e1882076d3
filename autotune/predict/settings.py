"""Which parameters of a space the cost model understands, by the names that trainers use.

A parameter counts as understood when its name is known and every one of its choices can be
read; what is not understood is left to the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from autotune.space.definition import Parameter

SpAlgorithm = Literal["ulysses", "ring", "usp"]
# Everything there is: all blocks, or all ranks.
ALL = 1 << 30
# MindSpeed-MM's chunk size where only the switch is given.
_USUAL_CHUNK = 1024


def understood(parameter: Parameter) -> tuple[str, tuple[Any, ...]] | None:
    """The setting that a parameter is, and what each of its choices means for it."""
    known = _NAMES.get(parameter.name)
    if known is None:
        return None
    setting, read = known
    values = tuple(read(choice) for choice in parameter.choices)
    return None if any(value is None for value in values) else (setting, values)


def fixed_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are fixed, such as a micro-batch size that is not tuned.

    values: by the names that trainers use, among others that mean nothing here.
    """
    settings = {}
    for name, (setting, read) in _NAMES.items():
        if name in values and (value := read(values[name])) is not None:
            settings[setting] = value
    return settings


# What reads a choice; None where it means nothing to the model.
_Read = Callable[[Any], Any]


def _count(choice: Any) -> int | None:
    """A degree or a size, from 1 on."""
    whole = isinstance(choice, int) and not isinstance(choice, bool)
    return choice if whole and choice >= 1 else None


def _amount(when_true: int) -> _Read:
    """A number from 0 on, where null and false are 0 and true is `when_true`."""

    def read(choice: Any) -> int | None:
        if choice is None or isinstance(choice, bool):
            return when_true if choice else 0
        return choice if isinstance(choice, int) and choice >= 0 else None

    return read


def _shards(choice: Any) -> int | None:
    """Ranks that share parameters and states; MindSpeed-MM's `auto` is all of them."""
    return ALL if choice == "auto" else _count(choice)


def _word(meanings: Mapping[str, Any]) -> _Read:
    """One of some words; null, true and false count as theirs."""

    def read(choice: Any) -> Any:
        if choice is None or isinstance(choice, bool):
            choice = {None: "none", False: "none", True: "true"}[choice]
        return meanings.get(choice) if isinstance(choice, str) else None

    return read


_ALGORITHMS: dict[str, SpAlgorithm] = {
    "none": "ulysses",  # of a point without sequence parallelism
    "ulysses": "ulysses",
    "ulysses_cp_algo": "ulysses",
    "ring": "ring",
    "megatron_cp_algo": "ring",
    "usp": "usp",
    "hybrid": "usp",
    "hybrid_cp_algo": "usp",
}
_ORDERS = {
    "none": "none",
    "bucketing": "bucketing",
    "data_bucketing_img": "bucketing",
    "reordering": "reordering",
    "data_reordering_img": "reordering",
}
_LOSS_CHUNKS = {"none": "none", "static": "static", "dynamic": "dynamic"}
_RECOMPUTE = {"none": False, "selective": False, "full": True, "true": True}

_OFFLOAD_SWITCHES = (
    "async_offload",
    "activation_offload",
    "enable_activation_offload",
    "attention_async_offload",
)
# By setting: what reads its choices, and the names that trainers give it.
_SETTINGS: dict[str, tuple[_Read, tuple[str, ...]]] = {
    "sp_degree": (_count, ("sp_degree", "context_parallel_size")),
    "sp_algorithm": (_word(_ALGORITHMS), ("sp_algorithm", "context_parallel_algo")),
    "ulysses_degree": (
        _count,
        ("ulysses_degree", "ulysses_degree_in_cp", "ulysses_parallel_size"),
    ),
    "ring_degree": (_count, ("ring_degree", "ring_attention_size")),
    "micro_batch_size": (_count, ("micro_batch_size",)),
    "bucket_order": (_word(_ORDERS), ("bucket_order", "priority_mode")),
    "offload_blocks": (_amount(ALL), ("offload_blocks", *_OFFLOAD_SWITCHES)),
    "loss_chunk_size": (
        _amount(_USUAL_CHUNK),
        ("loss_chunk_size", "enable_chunk_loss", "chunk_size"),
    ),
    "loss_chunks": (_word(_LOSS_CHUNKS), ("loss_chunk",)),
    "loss_total_chunk_size": (_count, ("loss_total_chunk_size", "total_chunk_size")),
    "encoder_sp_degree": (_count, ("encoder_sp_degree", "image_encoder_sp_degree")),
    "encoder_micro_batch_scale": (
        _count,
        ("encoder_micro_batch_scale", "hetero_encoder_mbs_scale"),
    ),
    "recompute": (_word(_RECOMPUTE), ("recompute", "recompute_granularity")),
    "tensor_parallel": (
        _count,
        ("tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size", "tp_degree"),
    ),
    "pipeline_parallel": (
        _count,
        (
            "pipeline_parallel",
            "pipeline_parallel_size",
            "pipeline_model_parallel_size",
            "pp_degree",
        ),
    ),
    "shards": (_shards, ("fsdp_size", "fully_shard_parallel_size", "sharding_size")),
}
_NAMES = {name: (setting, read) for setting, (read, names) in _SETTINGS.items() for name in names}
