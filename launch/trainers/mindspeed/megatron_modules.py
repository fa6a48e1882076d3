"""Figures of the modules of a Megatron model: layers, heads, and how a pipeline splits them.

What the model file says outdoes the command line (mindspeed_mm/patchs/validate_args_patch.py at
commit 57069cd5), with one exception: the sequence length of a vision-language model is the
command line's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.trainers.mindspeed.megatron_files import OpenFiles
from launch.trainers.mindspeed.megatron_models import DIFFUSION

IMAGE, AUDIO = "image_encoder", "audio_encoder"
ENCODER_CONFIGS: Mapping[str, str] = {
    IMAGE: "image_encoder.vision_encoder",
    AUDIO: "audio_encoder.audio_encoder",
}
_DIFFUSION_SEQUENCE = 3072  # checked where predictor.seq_length is absent, whatever the video's


def encoders_of(files: OpenFiles) -> tuple[str, ...]:
    """The encoders that the model has."""
    return tuple(name for name in ENCODER_CONFIGS if files.get(f"model:{ENCODER_CONFIGS[name]}"))


def stack_of(kind: str) -> str:
    """The part of the model file whose layers a pipeline splits."""
    return "predictor" if kind == DIFFUSION else "text_decoder"


def dims_of_launch(files: OpenFiles, kind: str) -> dict[str, Any]:
    """Figures by the names of `model.*`, those that the files or arguments have."""
    found = _diffusion(files) if kind == DIFFUSION else _decoder(files)
    for name, config in ENCODER_CONFIGS.items():
        prefix = "encoder" if name == IMAGE else "audio"
        figures = {
            f"{prefix}_num_layers": files.get(f"model:{config}.num_layers"),
            f"{prefix}_num_heads": files.get(f"model:{config}.num_attention_heads"),
            f"{prefix}_hidden_size": files.get(f"model:{config}.hidden_size"),
            f"{prefix}_ffn_size": files.get(f"model:{config}.ffn_hidden_size"),
        }
        found |= figures
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _decoder(files: OpenFiles) -> dict[str, Any]:
    def figure(key: str, option: str) -> Any:
        return files.get(f"model:text_decoder.{key}", files.arguments.number(option))

    heads = figure("num_attention_heads", "--num-attention-heads")
    return {
        "num_layers": figure("num_layers", "--num-layers"),
        "hidden_size": figure("hidden_size", "--hidden-size"),
        "ffn_size": figure("ffn_hidden_size", "--ffn-hidden-size"),
        "num_heads": heads,
        "num_kv_heads": figure("num_query_groups", "--num-query-groups") or heads,
        "vocab_size": figure("vocab_size", "--vocab-size"),
        "num_experts": figure("num_moe_experts", "--num-experts"),
        "seq_length": files.arguments.number("--seq-length"),
        "checked_seq_length": files.arguments.number("--seq-length"),
    }


def _diffusion(files: OpenFiles) -> dict[str, Any]:
    def figure(key: str) -> Any:
        return files.get(f"model:predictor.{key}")

    return {
        "num_layers": _diffusion_layers(files),
        "hidden_size": figure("hidden_size") or files.arguments.number("--hidden-size"),
        "num_heads": figure("num_heads") or files.arguments.number("--num-attention-heads"),
        "ffn_size": figure("ffn_dim"),
        "seq_length": _video_tokens(files),
        "checked_seq_length": figure("seq_length") or _DIFFUSION_SEQUENCE,
    }


def _video_tokens(files: OpenFiles) -> int | None:
    """Of the largest video that the data file lets through, text left out."""
    data = "data:dataset_param.preprocess_parameters"
    frames, height, width = (
        files.get(f"{data}.{name}") for name in ("num_frames", "max_height", "max_width")
    )
    patch = files.get("model:predictor.patch_size")
    spatial = files.get("model:ae.ffactor_spatial", _VAE_SPATIAL)
    temporal = files.get("model:ae.ffactor_temporal", _VAE_TEMPORAL)
    sizes = (frames, height, width, spatial, temporal, *(patch or [None]))
    if len(sizes) != 8 or not all(isinstance(size, int) and size >= 1 for size in sizes):
        return None
    latent = ((frames + temporal - 1) // temporal, height // spatial, width // spatial)
    tokens = 1
    for size, part in zip(latent, patch, strict=True):
        tokens *= size // part
    return tokens


_VAE_SPATIAL, _VAE_TEMPORAL = 8, 4  # where the model file names no VAE: Wan's


def _diffusion_layers(files: OpenFiles) -> int | None:
    layers = files.get("model:predictor.num_layers")
    if isinstance(layers, Sequence) and not isinstance(layers, str):
        return sum(layers)
    if layers is None:
        blocks = [files.get(f"model:predictor.mm_{sort}_blocks_depth") for sort in _BLOCKS]
        layers = max((depth for depth in blocks if isinstance(depth, int)), default=None)
    return layers if isinstance(layers, int) else files.arguments.number("--num-layers")


_BLOCKS = ("double", "single")


def flat(split: Any) -> list[int] | None:
    """`pipeline_num_layers` as one list: with virtual stages, one round after the other."""
    if not isinstance(split, list) or not split:
        return None
    rounds = split if isinstance(split[0], list) else [split]
    return [layers for one in rounds for layers in one]


def nested(split: Sequence[int], stages: int) -> list[Any]:
    """One list of layers as the model file has it: a list a round where there are several."""
    rounds = [list(split[at : at + stages]) for at in range(0, len(split), stages)]
    return rounds[0] if len(rounds) == 1 else rounds


def even(layers: int, parts: int) -> list[int]:
    """Layers in parts that differ by one at most, the larger ones last.

    The first stage has the encoders or the embedding besides.
    """
    return [(layers + part) // parts for part in range(parts)]
