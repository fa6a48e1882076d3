"""What one rank gets of a global batch, as arrays: decoded, padded and cut to its shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from launch.reference.config import Config, DitConfig, VlmConfig
from launch.reference.data.catalog import Sample, catalog
from launch.reference.data.exchange_plan import ExchangePlan, plan_exchange, sequence_length
from launch.reference.data.generate import TEXTS_FILE, clip_file, image_file
from launch.reference.data.labels import IGNORED
from launch.reference.data.order import GlobalBatch, plan_window
from launch.reference.layout import Layout

Array = NDArray[Any]


@dataclass(frozen=True)
class BatchFacts:
    """The whole global batch, the same on every rank.

    tokens: positions of all sequences without padding. loss_terms: numbers whose losses
    are averaged: tokens of a vlm, values of a dit.
    """

    samples: int
    tokens: int
    loss_terms: int


@dataclass(frozen=True)
class VlmMicroBatch:
    """tokens, labels: (batch, local positions); positions: (local positions,)."""

    tokens: Array
    labels: Array
    positions: Array


@dataclass(frozen=True)
class EncoderRound:
    """Images encoded at once, and the micro-batches that need their features.

    patches: (images, local patches, values); coordinates: (images, local patches, 2);
    lengths: valid patches of each image, padding excluded.
    """

    plan: ExchangePlan
    patches: Array
    coordinates: Array
    lengths: tuple[int, ...]
    micro_batches: tuple[VlmMicroBatch, ...]


@dataclass(frozen=True)
class VlmBatch:
    """A vlm's global batch."""

    facts: BatchFacts
    rounds: tuple[EncoderRound, ...]


@dataclass(frozen=True)
class DitMicroBatch:
    """Noised clips.

    clean, noise: (batch, local positions, values); times: (batch,);
    coordinates: (batch, local positions, 3); valid: (batch, local positions), 1 or 0;
    lengths: of whole clips.
    """

    clean: Array
    noise: Array
    times: Array
    coordinates: Array
    valid: Array
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class DitBatch:
    """A dit's global batch."""

    facts: BatchFacts
    micro_batches: tuple[DitMicroBatch, ...]


class BatchSource(Protocol):
    """Makes batches; calls do not depend on each other, so threads may make them ahead."""

    def batch(self, step: int) -> VlmBatch | DitBatch:
        """What this rank gets of step `step`."""
        ...


def open_source(config: Config, layout: Layout, rank: int, folder: Path) -> BatchSource:
    """The source of a rank's batches; `folder` holds the data set."""
    if isinstance(config.model, VlmConfig):
        return VlmSource(config, config.model, layout, rank, folder)
    return DitSource(config, config.model, layout, rank, folder)


class _Window:
    """The window's samples in their order, pass after pass."""

    def __init__(self, config: Config, layout: Layout) -> None:
        self.samples = catalog(config)
        width = config.model.hidden_size
        self._batches = plan_window(
            [sample.length for sample in self.samples],
            config.features.bucket_order,
            global_batch_size=config.training.global_batch_size,
            micro_batch_size=config.training.micro_batch_size,
            dp=layout.dp,
            seed=config.data.seed,
            # Linear layers cost about 6 * width a token for each unit of attention.
            work_of=lambda count, longest: count * longest * (6.0 * width + longest),
        )

    def at(self, step: int) -> tuple[int, GlobalBatch]:
        """The pass over the window that a step belongs to, and its global batch."""
        window_pass, index = divmod(step, len(self._batches))
        return window_pass, self._batches[index]

    def facts(self, batch: GlobalBatch, terms_a_token: int) -> BatchFacts:
        """Counts over the whole global batch."""
        chosen = [self.samples[n] for side in batch for micro in side for n in micro]
        return BatchFacts(
            samples=len(chosen),
            tokens=sum(sample.length for sample in chosen),
            loss_terms=terms_a_token * sum(sample.loss_tokens for sample in chosen),
        )


class VlmSource:
    """Images with text."""

    def __init__(
        self, config: Config, model: VlmConfig, layout: Layout, rank: int, folder: Path
    ) -> None:
        self._window = _Window(config, layout)
        self._patch = model.patch_size
        self._layout = layout
        self._rank = rank
        self._dp_index, self._sp_index = divmod(rank, layout.sp)
        self._folder = folder
        lengths = [sample.text_length for sample in self._window.samples]
        self._texts = np.split(np.load(folder / TEXTS_FILE), np.cumsum(lengths)[:-1])

    def batch(self, step: int) -> VlmBatch:
        """Decoded images of this rank's encoder group, tokens of its decoder shard."""
        _, batch = self._window.at(step)
        scale = self._layout.encoder_micro_batch_scale
        return VlmBatch(
            self._window.facts(batch, 1),
            tuple(self._round(batch[at : at + scale]) for at in range(0, len(batch), scale)),
        )

    def _round(self, encoder_round: GlobalBatch) -> EncoderRound:
        plan = plan_exchange(encoder_round, self._window.samples, self._layout, self._rank)
        split = self._layout.encoder_split
        held = split.positions(plan.image_length, self._rank % split.degree)
        patches = np.zeros((len(plan.images), len(held), 3 * self._patch**2), np.float32)
        coordinates = np.zeros((len(plan.images), len(held), 2), np.float32)
        for row, number in enumerate(plan.images):
            sample = self._window.samples[number]
            mine = held[held < sample.patches]
            patches[row, : len(mine)] = self._image_patches(number, sample)[mine]
            coordinates[row, : len(mine)] = np.stack(np.divmod(mine, sample.columns), axis=-1)
        return EncoderRound(
            plan=plan,
            patches=patches,
            coordinates=coordinates,
            lengths=tuple(self._window.samples[number].patches for number in plan.images),
            micro_batches=tuple(self._micro_batch(side[self._dp_index]) for side in encoder_round),
        )

    def _image_patches(self, number: int, sample: Sample) -> Array:
        from PIL import Image

        with Image.open(image_file(self._folder, number)) as image:
            pixels = np.asarray(image.convert("RGB"), np.float32) / 127.5 - 1.0
        size = self._patch
        grid = pixels.reshape(sample.rows, size, sample.columns, size, 3)
        return grid.transpose(0, 2, 1, 3, 4).reshape(sample.patches, -1)

    def _micro_batch(self, numbers: Sequence[int]) -> VlmMicroBatch:
        samples = self._window.samples
        length = sequence_length(numbers, samples, self._layout.split)
        tokens = np.zeros((len(numbers), length), np.int64)
        labels = np.full((len(numbers), length), IGNORED, np.int64)
        for row, number in enumerate(numbers):
            start, end = samples[number].patches, samples[number].length
            tokens[row, start:end] = self._texts[number]
            # A position predicts its successor; the last patch predicts the first token.
            labels[row, start - 1 : end - 1] = self._texts[number]
        held = self._layout.split.positions(length, self._sp_index)
        return VlmMicroBatch(tokens[:, held], labels[:, held], held)


class DitSource:
    """Clips."""

    def __init__(
        self, config: Config, model: DitConfig, layout: Layout, rank: int, folder: Path
    ) -> None:
        self._window = _Window(config, layout)
        self._seed = config.training.seed
        self._patch = model.patch_size
        self._values = model.channels * model.patch_size**2
        self._layout = layout
        self._dp_index, self._sp_index = divmod(rank, layout.sp)
        self._folder = folder

    def batch(self, step: int) -> DitBatch:
        """Clip patches of this rank's shard, with their noise and times.

        Noise and time of a sample depend on the seed, the sample and the pass over the
        window only, so that every layout and order trains on the same numbers.
        """
        window_pass, batch = self._window.at(step)
        return DitBatch(
            self._window.facts(batch, self._values),
            tuple(self._micro_batch(side[self._dp_index], window_pass) for side in batch),
        )

    def _micro_batch(self, numbers: Sequence[int], window_pass: int) -> DitMicroBatch:
        samples = self._window.samples
        length = sequence_length(numbers, samples, self._layout.split)
        held = self._layout.split.positions(length, self._sp_index)
        shape = (len(numbers), len(held))
        clean = np.zeros((*shape, self._values), np.float32)
        noise = np.zeros_like(clean)
        times = np.zeros(len(numbers), np.float32)
        coordinates = np.zeros((*shape, 3), np.float32)
        valid = np.zeros(shape, np.float32)
        for row, number in enumerate(numbers):
            sample = samples[number]
            mine = held[held < sample.patches]
            generator = np.random.default_rng([self._seed, 5, window_pass, number])
            times[row] = generator.random()
            drawn = generator.standard_normal((sample.patches, self._values), np.float32)
            noise[row, : len(mine)] = drawn[mine]
            clean[row, : len(mine)] = self._clip_patches(number, sample)[mine]
            grid = np.unravel_index(mine, (sample.frames, sample.rows, sample.columns))
            coordinates[row, : len(mine)] = np.stack(grid, axis=-1)
            valid[row, : len(mine)] = 1.0
        lengths = tuple(samples[number].patches for number in numbers)
        return DitMicroBatch(clean, noise, times, coordinates, valid, lengths)

    def _clip_patches(self, number: int, sample: Sample) -> Array:
        clip: Array = np.load(clip_file(self._folder, number))
        size = self._patch
        grid = clip.reshape(sample.frames, -1, sample.rows, size, sample.columns, size)
        return grid.transpose(0, 2, 4, 1, 3, 5).reshape(sample.patches, self._values)
