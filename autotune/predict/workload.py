"""What is known of the model and its data, from the figures in `model.dims`."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.predict.figures import Figures
from autotune.predict.lengths import LengthSpread
from autotune.space.definition import Facts

# Samples a global batch where it is not given; times are compared, so it matters little.
_SAMPLES_A_RANK = 8


@dataclass(frozen=True)
class Transformer:
    """Sizes of one stack of transformer blocks, and the lengths of its sequences.

    kv_heads: heads of keys and values, fewer than `num_heads` in grouped-query attention.
    gated: the MLP has a third matrix (SwiGLU). adaptive: norms are shifted, scaled and gated
    by a condition (adaLN-Zero of DiT, arXiv 2212.09748). dropout: after attention and MLP, and
    on attention's weights. materialised: attention's weights exist as a tensor (no flash
    attention).
    """

    hidden_size: int
    num_layers: int
    num_heads: int
    kv_heads: int
    ffn_size: int
    lengths: LengthSpread
    causal: bool
    gated: bool = False
    adaptive: bool = False
    dropout: bool = False
    materialised: bool = False

    @property
    def kv_width(self) -> float:
        """Elements of one position's keys, and of its values."""
        return self.hidden_size * self.kv_heads / self.num_heads

    @property
    def position_weights(self) -> float:
        """Weights of a block that every position is multiplied with."""
        attention = 2 * self.hidden_size * (self.hidden_size + self.kv_width)
        mlp = (3 if self.gated else 2) * self.hidden_size * self.ffn_size
        return attention + mlp

    @property
    def layer_parameters(self) -> float:
        """Weights of a block; biases and norms (below 1 %) are left out."""
        # The condition's projection works once a sample.
        return self.position_weights + (6 * self.hidden_size**2 if self.adaptive else 0)

    @property
    def parameters(self) -> float:
        """Weights of all blocks."""
        return self.num_layers * self.layer_parameters


@dataclass(frozen=True)
class Workload:
    """One global batch of training.

    decoder: the blocks that the tuned techniques act on (a DiT's only stack). encoder: that of
    a vision-language model, whose sequences are images. total_parameters: of the whole model.
    vocab_size: 0 without a vocabulary head. global_batch_size: samples. window: samples that
    bucket orders sort together. bytes_per_element: of activations and gradients.
    """

    decoder: Transformer
    encoder: Transformer | None
    vocab_size: int
    total_parameters: float
    global_batch_size: int
    bytes_per_element: float
    window: int | None = None

    @classmethod
    def from_facts(cls, facts: Facts) -> Workload | None:
        """The workload in `facts["model"]`, or None where too little is known of it.

        Needed are hidden_size, num_layers and seq_length (mean positions of a sample); the
        rest has customary values. Raises UserError for a figure that cannot be.
        """
        dims = Figures(facts.get("model", {}), "model.dims")
        is_dit = dims.get("kind") == "dit"
        decoder = _transformer(dims, "", causal=not is_dit, adaptive=is_dit)
        if decoder is None:
            return None
        encoder = _transformer(dims, "encoder_", causal=False)
        vocab_size = dims.count("vocab_size") or 0
        world_size = Figures(facts.get("cluster", {}), "cluster").count("world_size") or 1
        return cls(
            decoder=decoder,
            encoder=encoder,
            vocab_size=vocab_size,
            total_parameters=dims.number("parameters")
            or _parameters(decoder, encoder, vocab_size, dims.flag("tied_embeddings")),
            global_batch_size=dims.count("global_batch_size") or _SAMPLES_A_RANK * world_size,
            bytes_per_element=dims.number("bytes_per_element") or 2.0,
            window=dims.count("num_samples"),
        )


def _transformer(
    dims: Figures, prefix: str, *, causal: bool, adaptive: bool = False
) -> Transformer | None:
    hidden_size = dims.count(f"{prefix}hidden_size")
    num_layers = dims.count(f"{prefix}num_layers")
    mean = dims.number(f"{prefix}seq_length")
    heads = dims.count(f"{prefix}num_heads")
    kv_heads = dims.count(f"{prefix}num_kv_heads")
    ffn_size = dims.count(f"{prefix}ffn_size")
    spread = dims.number(f"{prefix}seq_length_cv", least=0.0)
    longest = dims.number(f"{prefix}seq_length_max")
    if hidden_size is None or num_layers is None or mean is None:
        return None
    return Transformer(
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=heads or 1,
        kv_heads=min(kv_heads or heads or 1, heads or 1),
        ffn_size=ffn_size or 4 * hidden_size,
        lengths=LengthSpread(mean, spread or 0.0, longest),
        causal=causal,
        gated=dims.flag(f"{prefix}gated_mlp"),
        adaptive=adaptive,
        dropout=dims.flag(f"{prefix}dropout"),
        materialised=not dims.flag(f"{prefix}flash_attention", default=True),
    )


def _parameters(
    decoder: Transformer, encoder: Transformer | None, vocab_size: int, tied: bool
) -> float:
    """Blocks, embedding and vocabulary head, and a projector of two layers."""
    vocabulary = vocab_size * decoder.hidden_size * (1 if tied else 2)
    if encoder is None:
        return decoder.parameters + vocabulary
    projector = decoder.hidden_size * (encoder.hidden_size + decoder.hidden_size)
    return decoder.parameters + encoder.parameters + vocabulary + projector
