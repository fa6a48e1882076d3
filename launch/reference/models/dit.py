"""`tiny_dit`: a video diffusion transformer with timestep conditioning (adaLN).

Blocks as in DiT (arXiv 2212.09748); the target is flow matching's velocity.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from launch.reference.config import DitConfig
from launch.reference.models.layers import (
    Attend,
    BlockContext,
    Mlp,
    SelfAttention,
    run_stack,
    sinusoids,
)


class AdaptiveBlock(nn.Module):  # type: ignore[misc]
    """A transformer block whose norms are shifted, scaled and gated by the condition."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention_norm = nn.LayerNorm(width, elementwise_affine=False)
        self.attention = SelfAttention(config)
        self.mlp_norm = nn.LayerNorm(width, elementwise_affine=False)
        self.mlp = Mlp(width, config.ffn_size)
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x: Tensor, condition: Tensor, attend: Attend) -> Tensor:
        """x: (batch, positions, hidden_size); condition: (batch, hidden_size)."""
        parts = self.modulation(condition).unsqueeze(1).chunk(6, dim=-1)
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = parts
        attended = self.attention(_modulate(self.attention_norm(x), shift, scale), attend)
        x = torch.addcmul(x, gate, attended)
        return torch.addcmul(
            x, mlp_gate, self.mlp(_modulate(self.mlp_norm(x), mlp_shift, mlp_scale))
        )


def _modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return torch.addcmul(shift, x, 1 + scale)


class TinyDit(nn.Module):  # type: ignore[misc]
    """Predicts the velocity of noised clip patches."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self._width = width
        self._code_widths = (width // 2, width // 4, width // 4)
        values = config.channels * config.patch_size**2
        self.patch_embedding = nn.Linear(values, width)
        self.time_embedding = nn.Sequential(
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.blocks = nn.ModuleList(AdaptiveBlock(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.final_modulation = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, values)

    def forward(
        self,
        noised: Tensor,
        times: Tensor,
        coordinates: Tensor,
        attend: Attend,
        context: BlockContext | None,
    ) -> Tensor:
        """The predicted velocity, as `noised`.

        noised: (batch, local positions, patch values); times: (batch,) in [0, 1];
        coordinates: (batch, local positions, 3) as frame, row, column.
        """
        condition = self.time_embedding(sinusoids(1000.0 * times.unsqueeze(-1), (self._width,)))
        x = self.patch_embedding(noised) + sinusoids(coordinates, self._code_widths)
        x = run_stack(self.blocks, x, lambda block, y: block(y, condition, attend), context)
        shift, scale = self.final_modulation(condition).unsqueeze(1).chunk(2, dim=-1)
        return self.out(_modulate(self.norm(x), shift, scale))


def squared_error(predicted: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Sum of squared errors over valid positions. valid: (batch, positions), 1 or 0."""
    errors = functional.mse_loss(predicted, target, reduction="none")
    return (errors * valid.unsqueeze(-1)).sum()
