"""What is in the data window: the shapes of its samples, drawn from the seed.

The catalog is pure: every rank knows all shapes without opening a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

import numpy as np

from launch.reference.config import Config, DitDataConfig, VlmDataConfig

# Part of the data set's hash: raise it when the generated content changes.
_CONTENT_VERSION = 1


@dataclass(frozen=True)
class Sample:
    """Shape of a sample: an image with text (frames is 1), or a clip (text_length is 0).

    frames, rows, columns: of patches.
    """

    frames: int
    rows: int
    columns: int
    text_length: int

    @property
    def patches(self) -> int:
        """Number of patches."""
        return self.frames * self.rows * self.columns

    @property
    def length(self) -> int:
        """Positions of its sequence: patches first, then text."""
        return self.patches + self.text_length

    @property
    def loss_tokens(self) -> int:
        """Positions that carry a loss: every text token is predicted, or every patch."""
        return self.text_length or self.patches


def catalog(config: Config) -> tuple[Sample, ...]:
    """The samples of the window, by their number."""
    generator = np.random.default_rng([config.data.seed, 1])
    return tuple(_draw(config, generator) for _ in range(config.data.num_samples))


def _draw(config: Config, generator: np.random.Generator) -> Sample:
    data, patch = config.data, config.model.patch_size
    if isinstance(data, VlmDataConfig):
        frames, text = 1, _between(generator, data.text_length)
        sizes = data.image_size
    else:
        frames, text = _between(generator, data.frames), 0
        sizes = data.frame_size
    edges = (sizes[0] // patch, sizes[1] // patch)
    return Sample(frames, _between(generator, edges), _between(generator, edges), text)


def _between(generator: np.random.Generator, ends: tuple[int, int]) -> int:
    return int(generator.integers(ends[0], ends[1] + 1))


def content_hash(config: Config) -> str:
    """Identifies the content of the data set: equal hashes, equal files."""
    data = dataclasses.asdict(config.data)
    del data["dir"], data["workers"]
    model = config.model
    is_clip = isinstance(config.data, DitDataConfig)
    spec = {
        "version": _CONTENT_VERSION,
        "kind": model.kind,
        "data": data,
        "patch_size": model.patch_size,
        "values": getattr(model, "channels" if is_clip else "vocab_size"),
    }
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
