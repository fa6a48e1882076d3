"""Figures of a model from the `config.json` that lies beside its weights (Hugging Face)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autotune.errors import UserError

# Ours by theirs. Vision towers differ in their names for the same thing.
_DECODER = {
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "num_key_value_heads": "num_kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "ffn_size",
    "vocab_size": "vocab_size",
    "linear_num_key_heads": "linear_num_key_heads",
    "linear_num_value_heads": "linear_num_value_heads",
    # One name or another: Qwen's, DeepSeek's and Kimi's, Mixtral's and MiniMax's.
    "num_experts": "num_experts",
    "n_routed_experts": "num_experts",
    "num_local_experts": "num_experts",
}
_ENCODER = {
    "hidden_size": "encoder_hidden_size",
    "depth": "encoder_num_layers",
    "num_hidden_layers": "encoder_num_layers",
    "num_heads": "encoder_num_heads",
    "num_attention_heads": "encoder_num_heads",
    "intermediate_size": "encoder_ffn_size",
}


def dims_of(text: str, name: str) -> dict[str, Any]:
    """The figures by the names of `model.*`, those that the file has. Raises UserError."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is no JSON: {error}; is it the model's config.json?") from None
    if not isinstance(config, Mapping):
        raise UserError(f"{name} holds no mapping; is it the model's config.json?")
    whole = _part(config, "thinker_config")  # the half of an Omni model that is trained
    decoder = _part(whole, "text_config")
    return {**_named(decoder, _DECODER), **_named(whole.get("vision_config"), _ENCODER)}


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a model, or the whole where it has no such part."""
    part = config.get(name)
    return part if isinstance(part, Mapping) else config


def _named(config: object, names: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        return {}
    found = {ours: config[theirs] for theirs, ours in names.items() if theirs in config}
    return {name: value for name, value in found.items() if type(value) is int}
