"""What rules read of the user's files and no space varies."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from launch.trainers.documents import YamlDocument
from launch.trainers.mindspeed.hf_config import dims_of
from launch.trainers.mindspeed.megatron_files import OpenFiles
from launch.trainers.mindspeed.megatron_models import DIFFUSION, TRANSFORMERS
from launch.trainers.mindspeed.megatron_modules import (
    ENCODER_CONFIGS,
    IMAGE,
    dims_of_launch,
    encoders_of,
)
from launch.trainers.sources import Sources

_ZERO3_DEFAULT = 8


def base_dims(files: OpenFiles, kind: str, sources: Sources) -> dict[str, Any]:
    """Figures of the model, as `model.*`: those of its files, and of the weights where found.

    A model of Hugging Face is built from its own config.json, but Megatron's checks read the
    launch's figures, so these come first.
    """
    dims = dims_of_launch(files, kind)
    folder = files.get("model:init_from_hf_path")
    if kind != TRANSFORMERS or not isinstance(folder, str):
        return dims
    name = str(PurePosixPath(folder) / "config.json")
    text = sources.find(name)
    return dims if text is None else {**dims_of(text, name), **dims}


def base_facts(files: OpenFiles, kind: str, sources: Sources) -> dict[str, Any]:
    """By name, of any type that a rule may read; some for the adapter alone."""
    arguments = files.arguments
    overlaps = not arguments.has("--no-overlap-p2p-communication")
    trained = not frozen(files) or arguments.has("--enable-dummy-optimizer")
    return {
        "model_id": _model_id(files, kind),
        "encoders": list(encoders_of(files)),
        "encoding_interval": _encoding_interval(files) if kind == DIFFUSION else 1,
        "empty_stages": kind != DIFFUSION and trained,
        "empty_virtual_stages": kind != DIFFUSION,
        "attention_mask": arguments.text("--attention-mask-type") or "causal",
        "least_interleaved": 1 if overlaps else 2,
        "encoder_data_parallel": bool(files.get("model:enable_encoder_dp", False)),
        "layerzero": arguments.has("--layerzero"),
        "layerzero_size": _layerzero_size(files, sources),
        "frozen_encoders": frozen(files),
        "lora": arguments.has("--lora-target-modules"),
        "ring_layout": kind != TRANSFORMERS or _ring_layout(files),
        "expert_parallel_size": arguments.number("--expert-model-parallel-size") or 1,
        "distributed_optimizer": arguments.has("--use-distributed-optimizer"),
        "overlap_grad_reduce": arguments.has("--overlap-grad-reduce"),
        "overlap_param_gather": arguments.has("--overlap-param-gather"),
        "activation_offload": False,
        "recompute_modules": None,
    }


def frozen(files: OpenFiles) -> bool:
    """Whether no encoder and no projector is trained."""
    parts = [f"{ENCODER_CONFIGS[module]}.freeze" for module in encoders_of(files)]
    defaults = dict.fromkeys(parts, True)
    if IMAGE in encoders_of(files):
        defaults["image_encoder.vision_projector.freeze"] = False
    return all(files.get(f"model:{part}", default) for part, default in defaults.items())


def _model_id(files: OpenFiles, kind: str) -> str | None:
    key = "model:predictor.model_id" if kind == DIFFUSION else "model:model_id"
    found = files.get(key)
    return found if isinstance(found, str) else None


def _encoding_interval(files: OpenFiles) -> int:
    """Micro-batches whose samples are encoded at once."""
    interval = files.get("model:encoder_offload_interval", 1)
    return interval if isinstance(interval, int) and interval >= 1 else 1


def _layerzero_size(files: OpenFiles, sources: Sources) -> int | None:
    name = files.arguments.text("--layerzero-config")
    text = None if not name else sources.find(str(PurePosixPath(name)))
    if text is None or name is None:
        return None
    size = YamlDocument(name, text).get(["zero3_size"], _ZERO3_DEFAULT)
    return size if isinstance(size, int) else None


def _ring_layout(files: OpenFiles) -> bool:
    modules = ("image_encoder.vision_encoder", "text_decoder")
    return all(files.get(f"model:{module}.attn_layout", "TND") == "TND" for module in modules)
