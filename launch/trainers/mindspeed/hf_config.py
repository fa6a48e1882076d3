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
    "num_experts": "num_experts",
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
    except ValueError as error:
        raise UserError(f"{name} is no JSON: {error}; is it the model's config.json?") from None
    if not isinstance(config, Mapping):
        raise UserError(f"{name} holds no mapping; is it the model's config.json?")
    whole = config.get("thinker_config", config)  # the half of an Omni model that is trained
    decoder = whole.get("text_config", whole)
    encoder = whole.get("vision_config", {})
    return {**_named(decoder, _DECODER), **_named(encoder, _ENCODER)}


def _named(config: object, names: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        return {}
    found = {ours: config[theirs] for theirs, ours in names.items() if theirs in config}
    return {name: value for name, value in found.items() if isinstance(value, int)}
