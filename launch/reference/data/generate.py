"""Generating the data set's files, once.

Images are PNG files, texts one `.npy` file, clips one `.npy` file each. A data set is
made in a folder beside its place and renamed into it, so that a reader never sees half
of one and two trials that start together do not disturb each other.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from launch.reference.config import Config, VlmConfig
from launch.reference.data.catalog import Sample, catalog, content_hash
from launch.reference.schema import ConfigError

HASH_FILE = "content.hash"
TEXTS_FILE = "texts.npy"


def image_file(folder: Path, number: int) -> Path:
    """Where a sample's image lies."""
    return folder / f"{number:06d}.png"


def clip_file(folder: Path, number: int) -> Path:
    """Where a sample's clip lies."""
    return folder / f"{number:06d}.npy"


def dataset_folder(config: Config) -> Path:
    """Where the data set of a configuration lies, or will."""
    if config.data.dir is not None:
        return Path(config.data.dir)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "autotune" / "reference" / content_hash(config)


def ensure_dataset(config: Config) -> Path:
    """The data set's folder; generates it when it is not there.

    Raises ConfigError when the folder holds something else.
    """
    folder = dataset_folder(config)
    if not _holds_dataset(folder, config):
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        _generate(config, made)
        _move_into_place(made, folder)
        if not _holds_dataset(folder, config):
            raise ConfigError(f"data.dir {folder} cannot take the generated data set")
    return folder


def _holds_dataset(folder: Path, config: Config) -> bool:
    if not folder.exists() or not any(folder.iterdir()):
        return False
    marker = folder / HASH_FILE
    found = marker.read_text(encoding="ascii") if marker.exists() else "no data set"
    if found != content_hash(config):
        raise ConfigError(
            f"data.dir {folder} holds {found}, but the configuration wants data set "
            f"{content_hash(config)}; name an empty folder, or null for the cache"
        )
    return True


def _move_into_place(made: Path, folder: Path) -> None:
    try:
        made.replace(folder)
    except OSError:
        # Another process was first; the caller checks that the result is the same.
        shutil.rmtree(made)


def _generate(config: Config, folder: Path) -> None:
    samples = catalog(config)
    for number, sample in enumerate(samples):
        generator = np.random.default_rng([config.data.seed, 2, number])
        if isinstance(config.model, VlmConfig):
            _write_image(image_file(folder, number), sample, config.model, generator)
        else:
            clip = _clip(sample, config.model.channels, config.model.patch_size, generator)
            np.save(clip_file(folder, number), clip)
    if isinstance(config.model, VlmConfig):
        np.save(folder / TEXTS_FILE, _texts(samples, config))
    (folder / HASH_FILE).write_text(content_hash(config), encoding="ascii")


def _write_image(
    path: Path, sample: Sample, model: VlmConfig, generator: np.random.Generator
) -> None:
    from PIL import Image

    height, width = sample.rows * model.patch_size, sample.columns * model.patch_size
    pixels = _smooth((3, height, width), generator)
    scaled = np.clip(pixels * 48 + 128, 0, 255).astype(np.uint8)
    Image.fromarray(scaled.transpose(1, 2, 0)).save(path, compress_level=1)


def _clip(
    sample: Sample, channels: int, patch: int, generator: np.random.Generator
) -> NDArray[np.float32]:
    """(frames, channels, height, width), about unit variance."""
    shape = (channels, sample.frames, sample.rows * patch, sample.columns * patch)
    return np.ascontiguousarray(_smooth(shape, generator).swapaxes(0, 1))


def _smooth(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float32]:
    """A plane wave for each channel, with some noise. shape: (channels, ...)."""
    values = np.empty(shape, np.float32)
    grid = np.meshgrid(*(np.arange(size) for size in shape[1:]), indexing="ij")
    for channel in range(shape[0]):
        rates = generator.uniform(-0.7, 0.7, len(grid))
        angle = sum(rate * axis for rate, axis in zip(rates, grid, strict=True))
        values[channel] = np.sin(angle + generator.uniform(0, 6.28))
    return values + generator.normal(0, 0.1, shape).astype(np.float32)


def _texts(samples: tuple[Sample, ...], config: Config) -> NDArray[np.int32]:
    """All texts one after the other: a walk on few tokens with some random steps."""
    assert isinstance(config.model, VlmConfig)
    used = min(config.model.vocab_size, 61)
    generator = np.random.default_rng([config.data.seed, 3])
    total = sum(sample.text_length for sample in samples)
    tokens = generator.integers(0, used, total).astype(np.int32)
    surprising = generator.random(total) < 0.1
    for index in range(1, total):
        if not surprising[index]:
            tokens[index] = (3 * tokens[index - 1] + 1) % used
    return tokens
