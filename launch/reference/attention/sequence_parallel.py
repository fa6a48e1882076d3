"""Attention over an SP group: Ulysses, ring, or both.

Ulysses (arXiv 2309.14509) trades a split of the sequence for a split of the heads with
one all-to-all before attention and one after it. USP (arXiv 2405.07719) puts such a
group inside a ring. With both degrees 1 it is plain attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from launch.reference.attention.ring import RingAttention
from launch.reference.collectives import AllToAll, Collectives
from launch.reference.parallel import Group


class SequenceParallelAttention:
    """Exact attention of local queries with the whole sequence.

    causal: a position sees itself and earlier ones; right padding is then harmless.
    Otherwise `__call__` needs the valid length of every row.
    """

    def __init__(self, ulysses: Group, ring: Group, collectives: Collectives, causal: bool) -> None:
        self._ulysses = ulysses
        self._ring = ring
        self._collectives = collectives
        self._causal = causal

    def __call__(self, qkv: Tensor, key_lengths: Sequence[int] | None = None) -> Tensor:
        """qkv: (batch, local positions, 3, heads, head_dim).

        Returns (batch, local positions, heads, head_dim).
        """
        if not self._causal and key_lengths is None:
            raise ValueError("full attention needs the valid length of every sequence")
        lengths = None if self._causal else key_lengths
        gathered = self._gather_sequence(qkv)
        q, k, v = gathered.permute(2, 0, 3, 1, 4).unbind(0)
        out = RingAttention.apply(q, k, v, lengths, self._ring, self._collectives)
        return self._scatter_sequence(out.transpose(1, 2))

    def _gather_sequence(self, qkv: Tensor) -> Tensor:
        """(b, l, 3, heads, d) -> (b, ulysses * l, 3, heads / ulysses, d)."""
        size = self._ulysses.size
        if size == 1:
            return qkv
        batch, length, three, heads, width = qkv.shape
        by_rank = qkv.view(batch, length, three, size, heads // size, width).movedim(3, 0)
        received: Tensor = AllToAll.apply(by_rank, self._ulysses, self._collectives)
        return received.transpose(0, 1).reshape(batch, size * length, three, heads // size, width)

    def _scatter_sequence(self, out: Tensor) -> Tensor:
        """(b, ulysses * l, heads / ulysses, d) -> (b, l, heads, d)."""
        size = self._ulysses.size
        if size == 1:
            return out
        batch, length, heads, width = out.shape
        by_rank = out.reshape(batch, size, length // size, heads, width).transpose(0, 1)
        received: Tensor = AllToAll.apply(by_rank, self._ulysses, self._collectives)
        return torch.movedim(received, 0, 2).reshape(batch, length // size, size * heads, width)
