"""Layers shared by the models. All work on the local positions of a sequence.

Attention is handed in as a function, so that the same layers run unsplit or under any
kind of sequence parallelism.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from launch.reference.config import TransformerConfig

# (batch, positions, 3, heads, head_dim) -> (batch, positions, heads, head_dim)
Attend = Callable[[Tensor], Tensor]


class BlockContext(Protocol):
    """What happens around the blocks of a stack, such as offloading their activations."""

    def block(self, index: int) -> AbstractContextManager[None]:
        """The context in which block `index` runs forward."""
        ...

    def after_block(self, index: int, output: Tensor) -> None:
        """Block `index` has run."""
        ...

    def after_stack(self, num_blocks: int) -> None:
        """All blocks have run."""
        ...


class SelfAttention(nn.Module):  # type: ignore[misc]
    """Multi-head self-attention."""

    def __init__(self, sizes: TransformerConfig) -> None:
        super().__init__()
        self.num_heads = sizes.num_heads
        self.qkv = nn.Linear(sizes.hidden_size, 3 * sizes.hidden_size)
        self.out = nn.Linear(sizes.hidden_size, sizes.hidden_size)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """x: (batch, positions, hidden_size)."""
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.num_heads, width // self.num_heads)
        return self.out(attend(qkv).reshape(batch, length, width))


class Mlp(nn.Module):  # type: ignore[misc]
    """Two linear layers with GELU between them."""

    def __init__(self, hidden_size: int, ffn_size: int) -> None:
        super().__init__()
        self.up = nn.Linear(hidden_size, ffn_size)
        self.down = nn.Linear(ffn_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., hidden_size)."""
        return self.down(functional.gelu(self.up(x)))


class Block(nn.Module):  # type: ignore[misc]
    """A pre-norm transformer block."""

    def __init__(self, sizes: TransformerConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.hidden_size)
        self.attention = SelfAttention(sizes)
        self.mlp_norm = nn.LayerNorm(sizes.hidden_size)
        self.mlp = Mlp(sizes.hidden_size, sizes.ffn_size)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """x: (batch, positions, hidden_size)."""
        x = x + self.attention(self.attention_norm(x), attend)
        return x + self.mlp(self.mlp_norm(x))


def run_stack(
    blocks: nn.ModuleList,
    x: Tensor,
    run: Callable[[nn.Module, Tensor], Tensor],
    context: BlockContext | None,
) -> Tensor:
    """`x` through all blocks, each called as `run(block, x)` within its context."""
    for index, block in enumerate(blocks):
        if context is None:
            x = run(block, x)
            continue
        with context.block(index):
            x = run(block, x)
        context.after_block(index, x)
    if context is not None:
        context.after_stack(len(blocks))
    return x


def sinusoids(coordinates: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Fixed position codes, a part of the width for each axis.

    coordinates: (..., axes). widths: the even part of each axis, in their order.
    Returns (..., sum of widths).
    """
    parts = []
    for axis, width in enumerate(widths):
        exponents = torch.arange(0, width, 2, device=coordinates.device) / width
        angles = coordinates[..., axis, None] * torch.exp(-9.2 * exponents)
        parts += [angles.sin(), angles.cos()]
    return torch.cat(parts, dim=-1)
