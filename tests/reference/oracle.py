"""Loss and gradients of a global batch on one rank, as plainly as they can be written.

No padding, no splitting, no exchange: one sample after the other through the models'
layers, PyTorch's own attention and cross entropy, and files read by other code than the
trainer's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from launch.reference.config import Config, DitConfig
from launch.reference.data.catalog import catalog
from launch.reference.data.order import plan_window
from launch.reference.models.dit import TinyDit
from launch.reference.models.vlm import TinyVlm


def _attend(causal: bool):
    def attend(qkv: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    return attend


def first_batch(config: Config, dp: int) -> list[int]:
    """Numbers of the samples of the first global batch."""
    lengths = [sample.length for sample in catalog(config)]
    batch = plan_window(
        lengths,
        config.features.bucket_order,
        global_batch_size=config.training.global_batch_size,
        micro_batch_size=config.training.micro_batch_size,
        dp=dp,
        seed=config.data.seed,
        work_of=lambda count, longest: count * longest * (6.0 * config.model.hidden_size + longest),
    )[0]
    return [number for side in batch for micro_batch in side for number in micro_batch]


def gradients(config: Config, folder: Path, dp: int) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients by parameter name."""
    torch.manual_seed(config.training.seed)
    numbers = first_batch(config, dp)
    if isinstance(config.model, DitConfig):
        model, loss = _dit(config, folder, numbers)
    else:
        model, loss = _vlm(config, folder, numbers)
    loss.backward()
    return loss.item(), {name: value.grad for name, value in model.named_parameters()}


def _vlm(config: Config, folder: Path, numbers: list[int]) -> tuple[TinyVlm, Tensor]:
    model = TinyVlm(config.model)
    samples = catalog(config)
    texts = torch.from_numpy(np.load(folder / "texts.npy")).long()
    starts = np.cumsum([0] + [sample.text_length for sample in samples])
    total, count = torch.zeros(()), 0
    for number in numbers:
        patches, places = _image(folder / f"{number:06d}.png", config.model.patch_size)
        features = model.encoder(patches[None], places[None], _attend(False))[0]
        text = texts[starts[number] : starts[number + 1]]
        n = len(features)
        tokens = torch.cat([torch.zeros(n, dtype=torch.long), text])
        hidden = model.decoder.hidden_states(
            tokens[None],
            torch.arange(len(tokens)),
            features,
            torch.arange(n),
            _attend(True),
            None,
        )[0]
        logits = hidden @ model.decoder.head.weight.T
        total = total + functional.cross_entropy(logits[n - 1 : -1], text, reduction="sum")
        count += len(text)
    return model, total / count


def _image(path: Path, size: int) -> tuple[Tensor, Tensor]:
    pixels = torch.from_numpy(np.array(Image.open(path))).float() / 127.5 - 1
    patches, places = [], []
    for row in range(pixels.shape[0] // size):
        for column in range(pixels.shape[1] // size):
            top, left = row * size, column * size
            patches.append(pixels[top : top + size, left : left + size].flatten())
            places.append([row, column])
    return torch.stack(patches), torch.tensor(places).float()


def _dit(config: Config, folder: Path, numbers: list[int]) -> tuple[TinyDit, Tensor]:
    model = TinyDit(config.model)
    total, count = torch.zeros(()), 0
    for number in numbers:
        clip = np.load(folder / f"{number:06d}.npy")
        patches, places = _clip(clip, config.model.patch_size)
        # The trainer's documented draw of time and noise: seed, 5, pass, sample.
        generator = np.random.default_rng([config.training.seed, 5, 0, number])
        time = torch.tensor([generator.random()]).float()
        noise = torch.from_numpy(generator.standard_normal(tuple(patches.shape), np.float32))
        noised = (1 - time) * patches + time * noise
        predicted = model(noised[None], time, places[None], _attend(False), None)[0]
        total = total + ((predicted - (noise - patches)) ** 2).sum()
        count += patches.numel()
    return model, total / count


def _clip(clip: np.ndarray, size: int) -> tuple[Tensor, Tensor]:
    frames, _, height, width = clip.shape
    patches, places = [], []
    for frame in range(frames):
        for row in range(height // size):
            for column in range(width // size):
                top, left = row * size, column * size
                patch = clip[frame, :, top : top + size, left : left + size]
                patches.append(torch.from_numpy(patch.copy()).flatten())
                places.append([frame, row, column])
    return torch.stack(patches), torch.tensor(places).float()
