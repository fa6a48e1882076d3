"""`tiny_vlm`: image encoder, projector, causal decoder and vocabulary head."""

from __future__ import annotations

from torch import Tensor, nn

from launch.reference.chunked_loss import token_loss
from launch.reference.config import VlmConfig
from launch.reference.models.layers import (
    Attend,
    Block,
    BlockContext,
    run_stack,
    sinusoids,
)

CHANNELS = 3


class VisionEncoder(nn.Module):  # type: ignore[misc]
    """A vision transformer over image patches, and the projector into the decoder."""

    def __init__(self, config: VlmConfig) -> None:
        super().__init__()
        sizes = config.encoder
        half = sizes.hidden_size // 2
        self._code_widths = (half, half)
        self.patch_embedding = nn.Linear(CHANNELS * config.patch_size**2, sizes.hidden_size)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.num_layers))
        self.norm = nn.LayerNorm(sizes.hidden_size)
        self.projector = nn.Sequential(
            nn.Linear(sizes.hidden_size, config.hidden_size),
            nn.GELU(),
            nn.Linear(config.hidden_size, config.hidden_size),
        )

    def forward(self, patches: Tensor, coordinates: Tensor, attend: Attend) -> Tensor:
        """Features for the decoder, (images, positions, decoder hidden_size).

        patches: (images, positions, patch values); coordinates: (images, positions, 2).
        """
        x = self.patch_embedding(patches) + sinusoids(coordinates, self._code_widths)
        x = run_stack(self.blocks, x, lambda block, y: block(y, attend), None)
        return self.projector(self.norm(x))


class Decoder(nn.Module):  # type: ignore[misc]
    """A causal language model over image features and text tokens."""

    def __init__(self, config: VlmConfig) -> None:
        super().__init__()
        self._width = config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.hidden_size)
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def hidden_states(
        self,
        tokens: Tensor,
        positions: Tensor,
        features: Tensor,
        feature_places: Tensor,
        attend: Attend,
        context: BlockContext | None,
    ) -> Tensor:
        """The last hidden states, normed, (batch, local positions, hidden_size).

        tokens: (batch, local positions); positions: (local positions,) in the sequence;
        features: (rows, hidden_size) that take the places `feature_places` of the
        flattened (batch * local positions).
        """
        x = self.embedding(tokens)
        x = x.flatten(0, 1).index_copy(0, feature_places, features).view_as(x)
        x = x + sinusoids(positions.unsqueeze(-1), (self._width,))
        return self.norm(run_stack(self.blocks, x, lambda block, y: block(y, attend), context))

    def loss(self, hidden: Tensor, labels: Tensor, chunk: int) -> Tensor:
        """Sum of the token losses; see `token_loss`."""
        return token_loss(hidden, self.head.weight, labels, chunk)


class TinyVlm(nn.Module):  # type: ignore[misc]
    """Encoder and decoder; they run on different samples of a step, see `vlm_step`."""

    def __init__(self, config: VlmConfig) -> None:
        super().__init__()
        self.encoder = VisionEncoder(config)
        self.decoder = Decoder(config)
