"""Parameters of the search <-> arguments and files of a Megatron launch.

The global batch is held at its size: the number of micro-batches follows from it. With
hetero-parallel the parameters of the model's parallelism are the decoder's, the shell's own are 1,
and the program divides the global batch that it is given by the decoder's ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch.trainers.mindspeed.degrees import degrees_of, group_sizes
from launch.trainers.mindspeed.megatron_files import OpenFiles
from launch.trainers.mindspeed.megatron_knobs import Knob
from launch.trainers.mindspeed.megatron_models import DIFFUSION
from launch.trainers.mindspeed.megatron_modules import (
    ENCODER_CONFIGS,
    encoders_of,
    even,
    flat,
    nested,
    stack_of,
)
from launch.trainers.mindspeed.megatron_recompute import recompute_of, recompute_settings
from launch.trainers.mindspeed.megatron_samples import (
    bucket_settings,
    grouping_settings,
    samples_of,
)

EVEN = "even"
"""A pipeline whose stages differ by one layer at most."""

_TP, _PP, _CP = (
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--context-parallel-size",
)
_PARALLEL: Mapping[str, tuple[str, str]] = {
    "tensor_parallel_size": (_TP, "model:text_decoder.tp"),
    "pipeline_parallel_size": (_PP, "model:text_decoder.pp"),
    "sp_degree": (_CP, "model:text_decoder.cp"),
}
_HETERO, _VIRTUAL = "--hetero-parallel", "--virtual-pipeline-model-parallel-size"
_ALGORITHM, _ULYSSES = "--context-parallel-algo", "--ulysses-degree-in-cp"
_ALGORITHMS: Mapping[str, str] = {
    "ulysses": "ulysses_cp_algo",
    "ring": "megatron_cp_algo",
    "usp": "hybrid_cp_algo",
}
_LOSS_MODE, _LOSS_CHUNK = "model:loss_cfg.compute_mode", "model:loss_cfg.chunk_size"
_LOSS_MODES: Mapping[str, str] = {"none": "default", "static": "chunk", "dynamic": "dynamic_chunk"}
_LOSS_DEFAULTS: Mapping[str, int] = {"static": 1024, "dynamic": 4096}


def values_of(
    files: OpenFiles, kind: str, knobs: Mapping[str, Knob], layers: int | None
) -> dict[str, Any]:
    """What the base says for every parameter that a Megatron launch has.

    Parameters of other kinds of models are there too, with what they mean where they do not vary.
    """
    hetero = files.arguments.has(_HETERO)
    parallel = {
        name: files.get(inner, 1) if hetero else files.arguments.number(option) or 1
        for name, (option, inner) in _PARALLEL.items()
    }
    plain = {name: knob.read(files) for name, knob in knobs.items() if knob.key is not None}
    return {
        **plain,
        **parallel,
        **_sequence_parallelism(files, parallel["sp_degree"]),
        "hetero_parallel": hetero,
        "virtual_pipeline_size": files.arguments.number(_VIRTUAL) or 1,
        "pipeline_split": flat(files.get(f"model:{stack_of(kind)}.pipeline_num_layers")) or EVEN,
        **recompute_of(files, kind, layers),
        **samples_of(files),
        **_loss_of(files),
    }


def global_batch_of(files: OpenFiles, values: Mapping[str, Any], world_size: int) -> int | None:
    """Samples of a step of the base, None where its layout does not fit the ranks."""
    ranks = int(
        values["tensor_parallel_size"] * values["pipeline_parallel_size"] * values["sp_degree"]
    )
    given = files.arguments.number("--global-batch-size")
    if given is not None:
        return given // ranks if values["hetero_parallel"] else given
    return None if world_size % ranks else values["micro_batch_size"] * world_size // ranks


def apply(
    files: OpenFiles,
    kind: str,
    knobs: Mapping[str, Knob],
    values: Mapping[str, Any],
    dims: Mapping[str, Any],
) -> None:
    """Makes the launch have the values. dims: `num_layers` and `global_batch_size` among them.

    A key that says the same already is not touched.
    """
    settings: dict[str, Any] = {
        knob.key: values[name]
        for name, knob in knobs.items()
        if knob.key is not None and values[name] != knob.read(files)
    }
    settings |= _parallel_settings(files, values, int(dims["global_batch_size"]))
    settings |= _pipeline_settings(files, kind, values, dims)
    if "recompute" in knobs:
        settings |= recompute_settings(files, kind, values)
    if "bucket_order" in knobs:
        settings |= bucket_settings(files, values["bucket_order"])
    if "length_grouping" in knobs:
        settings |= grouping_settings(files, values["length_grouping"])
    if "loss_chunk" in knobs:
        settings |= _loss_settings(files, values)
    for key, value in settings.items():
        files.put(key, value)


def _sequence_parallelism(files: OpenFiles, degree: int) -> dict[str, Any]:
    native = files.get(_ALGORITHM, "megatron_cp_algo")
    names = {theirs: ours for ours, theirs in _ALGORITHMS.items()}
    ulysses = files.arguments.number(_ULYSSES) or 1
    if native == "hybrid_cp_algo" and degree > 1:
        return degrees_of(ulysses, max(1, degree // ulysses)) | {"sp_degree": degree}
    return {"sp_algorithm": names.get(native, native), "ulysses_degree": ulysses}


def _parallel_settings(
    files: OpenFiles, values: Mapping[str, Any], global_batch: int
) -> dict[str, Any]:
    hetero = values["hetero_parallel"]
    settings: dict[str, Any] = {}
    ranks = 1
    for name, (option, inner) in _PARALLEL.items():
        size = values[name]
        ranks *= size
        told = 1 if hetero else size
        if (files.arguments.number(option) or 1) != told:
            settings[option] = told
        if hetero:
            settings[inner] = size
    if hetero:
        settings |= _encoder_settings(files, values)
    settings["--global-batch-size"] = global_batch * ranks if hetero else global_batch
    degrees = [values["sp_degree"], *_encoder_degrees(files, values)]
    if max(degrees) > 1:
        settings |= _sequence_settings(files, values)
    return settings


def _encoder_settings(files: OpenFiles, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of each encoder that the model has: its keys must be there, whatever they say."""
    settings: dict[str, Any] = {}
    for module in encoders_of(files):
        settings |= {
            f"model:{module}.tp": values[f"{module}_tensor_parallel_size"],
            f"model:{module}.pp": values[f"{module}_pipeline_parallel_size"],
            f"model:{module}.cp": values[f"{module}_sp_degree"],
        }
    return settings


def _encoder_degrees(files: OpenFiles, values: Mapping[str, Any]) -> list[int]:
    if not values["hetero_parallel"]:
        return []
    return [values[f"{module}_sp_degree"] for module in encoders_of(files)]


def _sequence_settings(files: OpenFiles, values: Mapping[str, Any]) -> dict[str, Any]:
    # Encoders with a degree of their own take the algorithm too, whatever the decoder's is.
    algorithm = values["sp_algorithm"] if values["sp_degree"] > 1 else "ulysses"
    ulysses, _ = group_sizes({**values, "sp_algorithm": algorithm})
    native = _ALGORITHMS.get(algorithm, algorithm)
    settings: dict[str, Any] = {_ULYSSES: ulysses if algorithm == "usp" else None}
    if files.get(_ALGORITHM, "megatron_cp_algo") != native:
        settings[_ALGORITHM] = native
    return settings


def _pipeline_settings(
    files: OpenFiles, kind: str, values: Mapping[str, Any], dims: Mapping[str, Any]
) -> dict[str, Any]:
    stages, rounds = values["pipeline_parallel_size"], values["virtual_pipeline_size"]
    if stages * rounds == 1:
        return {}
    split = values["pipeline_split"]
    layers = even(int(dims["num_layers"]), stages * rounds) if split == EVEN else split
    settings: dict[str, Any] = {
        f"model:{stack_of(kind)}.pipeline_num_layers": nested(layers, stages)
    }
    if kind == DIFFUSION:
        settings["--use-multiparameter-pipeline-model-parallel"] = True
    elif not values["hetero_parallel"]:
        settings |= _encoders_first(files, stages, rounds)
    return settings


def _encoders_first(files: OpenFiles, stages: int, rounds: int) -> dict[str, Any]:
    """All layers of each encoder in the first stage, unless the base's split fits the stages."""
    settings: dict[str, Any] = {}
    for module in encoders_of(files):
        config = ENCODER_CONFIGS[module]
        key = f"model:{config}.pipeline_num_layers"
        present = flat(files.get(key))
        if present is None or len(present) != stages * rounds:
            layers = files.get(f"model:{config}.num_layers", 0)
            settings[key] = nested([layers, *[0] * (stages * rounds - 1)], stages)
    return settings


def _loss_of(files: OpenFiles) -> dict[str, Any]:
    native = files.get(_LOSS_MODE, "default")
    mode = {theirs: ours for ours, theirs in _LOSS_MODES.items()}.get(native, native)
    size = files.get(_LOSS_CHUNK)
    return {
        "loss_chunk": mode,
        "loss_chunk_size": size if size and mode != "dynamic" else _LOSS_DEFAULTS["static"],
        "loss_total_chunk_size": size if size and mode == "dynamic" else _LOSS_DEFAULTS["dynamic"],
    }


def _loss_settings(files: OpenFiles, values: Mapping[str, Any]) -> dict[str, Any]:
    mode = values["loss_chunk"]
    settings: dict[str, Any] = {}
    if files.get(_LOSS_MODE, "default") != _LOSS_MODES[mode]:
        settings[_LOSS_MODE] = _LOSS_MODES[mode]
    if mode != "none":
        size = values["loss_chunk_size" if mode == "static" else "loss_total_chunk_size"]
        if files.get(_LOSS_CHUNK, _LOSS_DEFAULTS[mode]) != size:
            settings[_LOSS_CHUNK] = size
    return settings
