"""The trainer's configuration: what a YAML file may say.

Frozen dataclasses that check what they can check alone. What depends on the
number of ranks is checked by `launch.reference.layout.Layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from launch.rank.profile_options import ProfileOptions
from launch.reference.schema import ConfigError, read_dataclass

SpAlgorithm = Literal["ulysses", "ring", "usp"]
BucketOrder = Literal["none", "bucketing", "reordering"]
DeviceType = Literal["cpu", "cuda", "npu"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _require_positive(section: str, **values: int) -> None:
    for name, value in values.items():
        _require(value >= 1, f"{section}.{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of one stack of transformer blocks; `ffn_size` is the MLP's inner width."""

    hidden_size: int
    num_layers: int
    num_heads: int
    ffn_size: int

    def __post_init__(self) -> None:
        _require_positive(
            "model",
            hidden_size=self.hidden_size,
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            ffn_size=self.ffn_size,
        )
        _require(
            self.hidden_size % self.num_heads == 0,
            f"hidden_size must be a multiple of num_heads, got {self.hidden_size} "
            f"and {self.num_heads}",
        )
        _require(
            self.hidden_size % 8 == 0,
            f"hidden_size must be a multiple of 8 (position codes), got {self.hidden_size}",
        )


@dataclass(frozen=True)
class VlmConfig(TransformerConfig):
    """A vision-language model: image encoder, projector, causal decoder, vocabulary head."""

    kind: Literal["vlm"]
    vocab_size: int
    patch_size: int
    encoder: TransformerConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive("model", patch_size=self.patch_size)
        _require(self.vocab_size >= 2, f"model.vocab_size must be at least 2: {self.vocab_size}")


@dataclass(frozen=True)
class DitConfig(TransformerConfig):
    """A video diffusion transformer over clips of `channels` channels."""

    kind: Literal["dit"]
    patch_size: int
    channels: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive("model", patch_size=self.patch_size, channels=self.channels)


@dataclass(frozen=True)
class DataConfig:
    """The data window: `num_samples` samples drawn from `seed`, visited over and over.

    dir: where the samples lie or are generated; null takes the user's cache folder.
    workers: threads that decode samples ahead of the step; 0 decodes within the step.
    """

    num_samples: int
    seed: int = 0
    dir: str | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        _require_positive("data", num_samples=self.num_samples)
        _require(self.workers >= 0, f"data.workers must be at least 0, got {self.workers}")


@dataclass(frozen=True)
class VlmDataConfig(DataConfig):
    """Images with text. image_size: edge lengths in pixels; text_length: tokens."""

    image_size: tuple[int, int] = (64, 160)
    text_length: tuple[int, int] = (32, 256)


@dataclass(frozen=True)
class DitDataConfig(DataConfig):
    """Clips. frames: frames a clip; frame_size: edge lengths of a frame in pixels."""

    frames: tuple[int, int] = (2, 16)
    frame_size: tuple[int, int] = (8, 16)


@dataclass(frozen=True)
class ParallelConfig:
    """Sequence parallelism of the decoder (or DiT), and the encoder's own layout."""

    sp_degree: int = 1
    sp_algorithm: SpAlgorithm | None = None
    ulysses_degree: int | None = None
    encoder_sp_degree: int = 1
    encoder_micro_batch_scale: int = 1

    def __post_init__(self) -> None:
        _require_positive(
            "parallel",
            sp_degree=self.sp_degree,
            encoder_sp_degree=self.encoder_sp_degree,
            encoder_micro_batch_scale=self.encoder_micro_batch_scale,
        )
        if self.sp_degree == 1:
            _require(
                self.sp_algorithm is None,
                f"parallel.sp_algorithm must be null when sp_degree is 1, got {self.sp_algorithm}",
            )
        else:
            _require(
                self.sp_algorithm is not None,
                f"parallel.sp_algorithm must be ulysses, ring or usp when sp_degree is "
                f"{self.sp_degree}, got null",
            )
        self._check_ulysses_degree()

    def _check_ulysses_degree(self) -> None:
        if self.sp_algorithm != "usp":
            _require(
                self.ulysses_degree is None,
                "parallel.ulysses_degree belongs to sp_algorithm usp only; leave it null, "
                f"got {self.ulysses_degree}",
            )
            return
        degree = self.ulysses_degree
        _require(
            degree is not None and degree >= 1 and self.sp_degree % degree == 0,
            f"parallel.ulysses_degree must divide sp_degree {self.sp_degree} "
            f"(sp_algorithm usp), got {degree}",
        )


@dataclass(frozen=True)
class TrainingConfig:
    """One step is one global batch; `steps` of them are made. Clipping by the global norm."""

    global_batch_size: int
    micro_batch_size: int
    steps: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _require_positive(
            "training",
            global_batch_size=self.global_batch_size,
            micro_batch_size=self.micro_batch_size,
            steps=self.steps,
        )


@dataclass(frozen=True)
class FeaturesConfig:
    """Memory techniques and the order of the data.

    offload_blocks: how many of the decoder's (or DiT's) first blocks keep their saved
        activations off the device between forward and backward.
    loss_chunk_size: positions of the sequence whose logits exist at once; 0 means all.
    """

    offload_blocks: int = 0
    loss_chunk_size: int = 0
    bucket_order: BucketOrder = "none"

    def __post_init__(self) -> None:
        _require(
            self.offload_blocks >= 0 and self.loss_chunk_size >= 0,
            "features.offload_blocks and features.loss_chunk_size must be at least 0, got "
            f"{self.offload_blocks} and {self.loss_chunk_size}",
        )


@dataclass(frozen=True)
class DeviceConfig:
    """memory_bytes: a cap on the device memory of a rank; null leaves it uncapped."""

    type: DeviceType
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.memory_bytes is not None:
            _require_positive("device", memory_bytes=self.memory_bytes)


@dataclass(frozen=True)
class MeasurementConfig:
    """Measuring trials only.

    memory_steps: first of the `training.steps`, in which peak memory is observed. profile:
    what is collected in the last of them. The steps between are scored; they end early when
    the launcher asks for it, and a profile that is requested while they run adds its steps.
    """

    memory_steps: int
    profile: ProfileOptions | None = None

    def __post_init__(self) -> None:
        _require(
            self.memory_steps >= 0,
            f"measurement.memory_steps must be at least 0, got {self.memory_steps}",
        )


@dataclass(frozen=True)
class Config:
    """Everything the trainer is told."""

    model: VlmConfig | DitConfig
    data: VlmDataConfig | DitDataConfig
    parallel: ParallelConfig
    training: TrainingConfig
    features: FeaturesConfig
    device: DeviceConfig
    measurement: MeasurementConfig | None = None

    def __post_init__(self) -> None:
        layers, offloaded = self.model.num_layers, self.features.offload_blocks
        _require(
            offloaded <= layers,
            f"features.offload_blocks must be at most model.num_layers {layers}, got {offloaded}",
        )
        samples, batch = self.data.num_samples, self.training.global_batch_size
        _require(
            samples % batch == 0,
            "data.num_samples must be a multiple of training.global_batch_size, so that steps "
            f"visit whole windows, got {samples} and {batch}",
        )
        if isinstance(self.model, DitConfig):
            self._check_dit()
        self._check_data_sizes()
        if self.measurement is not None:
            self._check_steps(self.measurement)

    def _check_steps(self, measurement: MeasurementConfig) -> None:
        profile = measurement.profile.total_steps if measurement.profile else 0
        _require(
            measurement.memory_steps + profile <= self.training.steps,
            f"training.steps={self.training.steps} must hold measurement.memory_steps="
            f"{measurement.memory_steps} and the {profile} steps of measurement.profile",
        )

    def _check_dit(self) -> None:
        parallel = self.parallel
        _require(
            self.features.loss_chunk_size == 0,
            "features.loss_chunk_size is for the vocabulary head of a vlm; a dit takes 0, got "
            f"{self.features.loss_chunk_size}",
        )
        _require(
            parallel.encoder_sp_degree == 1 and parallel.encoder_micro_batch_scale == 1,
            "a dit has no encoder: parallel.encoder_sp_degree and encoder_micro_batch_scale "
            f"must be 1, got {parallel.encoder_sp_degree} and "
            f"{parallel.encoder_micro_batch_scale}",
        )

    def _check_data_sizes(self) -> None:
        data, patch = self.data, self.model.patch_size
        name = "image_size" if isinstance(data, VlmDataConfig) else "frame_size"
        sizes = data.image_size if isinstance(data, VlmDataConfig) else data.frame_size
        _require(
            all(size % patch == 0 for size in sizes),
            f"data.{name} must be multiples of model.patch_size {patch}, got {list(sizes)}",
        )


def load_config(path: Path) -> Config:
    """The configuration in a YAML file: the trainer's own, or an exported `best.yaml`.

    Raises ConfigError when the file cannot be read or says something illegal.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path} must hold a mapping with model, data, parallel, ...")
    trainer = content.get("trainer")
    if isinstance(trainer, Mapping) and isinstance(trainer.get("config"), Mapping):
        content = trainer["config"]
    return parse_config(content)


_SECTIONS: Mapping[str, Mapping[str, type]] = {
    "vlm": {"model": VlmConfig, "data": VlmDataConfig},
    "dit": {"model": DitConfig, "data": DitDataConfig},
}


def parse_config(content: Mapping[str, Any]) -> Config:
    """The configuration from nested plain values. Raises ConfigError."""
    model = content.get("model")
    kind = model.get("kind") if isinstance(model, Mapping) else None
    if not isinstance(kind, str) or kind not in _SECTIONS:
        raise ConfigError(f"model.kind must be one of vlm, dit, got {kind!r}")
    sections = {
        **_SECTIONS[kind],
        "parallel": ParallelConfig,
        "training": TrainingConfig,
        "features": FeaturesConfig,
        "device": DeviceConfig,
        "measurement": MeasurementConfig,
    }
    unknown = [key for key in content if key not in sections]
    if unknown:
        raise ConfigError(f"unknown section {unknown[0]}; allowed: {', '.join(sections)}")
    values: dict[str, Any] = {
        name: read_dataclass(cls, content.get(name) or {}, name)
        for name, cls in sections.items()
        if name != "measurement" or content.get(name) is not None
    }
    return Config(**values)
