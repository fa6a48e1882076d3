"""Operations of a stack of blocks, as PaLM counts them (arXiv 2204.02311, appendix B)."""

from __future__ import annotations

from autotune.predict.workload import Transformer


def stack_operations(stack: Transformer, layers: float, recompute: bool = False) -> float:
    """Operations a position in all matrix products with weights: 6 a weight (PaLM), 8 again."""
    return (8 if recompute else 6) * layers * stack.position_weights


def attention_operations(stack: Transformer, layers: float, recompute: bool = False) -> float:
    """Operations a position and a position it sees: 12 layers h (PaLM); half of them if causal."""
    each = 12.0 * layers * stack.hidden_size * (4 / 3 if recompute else 1)
    return each / 2 if stack.causal else each
