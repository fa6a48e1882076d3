"""Recomputation of activations: parameters <-> where a kind of model looks for them.

A diffusion transformer looks at the arguments. The modules of a vision-language model look at
their part of the model file first, then at the arguments; here only the decoder's part is
changed (mindspeed_mm/utils/transformer_model_config.py and
MindSpeed/mindspeed/core/megatron_basic/arguments_basic.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch.trainers.mindspeed.megatron_files import OpenFiles
from launch.trainers.mindspeed.megatron_models import VISION_LANGUAGE

_GRANULARITY, _METHOD, _LAYERS = (
    "--recompute-granularity",
    "--recompute-method",
    "--recompute-num-layers",
)
_SKIP, _SKIPPED = (
    "--recompute-skip-core-attention",
    "--recompute-num-layers-skip-core-attention",
)
_DECODER: Mapping[str, str] = {
    _GRANULARITY: "model:text_decoder.recompute_granularity",
    _METHOD: "model:text_decoder.recompute_method",
    _LAYERS: "model:text_decoder.recompute_num_layers",
}


def recompute_of(files: OpenFiles, kind: str, layers: int | None) -> dict[str, Any]:
    """What the base says. layers: of the model, which is what a DiT takes for no number."""
    granularity = _present(files, kind, _GRANULARITY)
    if granularity is None and files.arguments.has("--recompute-activations"):
        granularity = "selective"
    number = _present(files, kind, _LAYERS)
    skipped = files.arguments.number(_SKIPPED) if files.arguments.has(_SKIP) else 0
    return {
        "recompute": granularity or "none",
        "recompute_method": _present(files, kind, _METHOD),
        "recompute_layers": int(number) if number is not None else layers,
        "skip_attention_layers": skipped or 0,
    }


def recompute_settings(files: OpenFiles, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys to set for the values, none where the base says the same."""
    present = recompute_of(files, kind, values["recompute_layers"])
    wanted = {name: values[name] for name in present}
    if _meaning(present) == _meaning(wanted):
        return {}
    full = wanted["recompute"] == "full"
    granularity = None if wanted["recompute"] == "none" else wanted["recompute"]
    settings = {
        _GRANULARITY: granularity,
        _METHOD: wanted["recompute_method"] if full else None,
        _LAYERS: wanted["recompute_layers"] if full else None,
    }
    if kind == VISION_LANGUAGE:
        return {_DECODER[option]: value for option, value in settings.items()}
    skipped = wanted["skip_attention_layers"] if full else 0
    return {
        **settings,
        "--recompute-activations": None,
        _SKIP: skipped > 0,
        _SKIPPED: skipped or None,
    }


def _present(files: OpenFiles, kind: str, option: str) -> Any:
    if kind == VISION_LANGUAGE and files.holds(_DECODER[option]):
        return files.get(_DECODER[option])
    return files.get(option)


def _meaning(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells two settings apart: layers and method mean nothing unless all is recomputed."""
    if values["recompute"] != "full":
        return (values["recompute"],)
    return tuple(values[name] for name in sorted(values))
