"""Ring attention (arXiv 2310.01889): key and value blocks travel, queries stay.

Blocks are merged by their log-sum-exp, so the result is exact. In backward the blocks
travel again, and their gradients with them until they are home. A causal ring uses the
zigzag split (`SequenceSplit`), in which every rank has the same work in every round.
A ring of one is plain attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from launch.reference.attention.blocks import block_backward, block_forward
from launch.reference.collectives import Collectives, Shift
from launch.reference.parallel import Group


@dataclass(frozen=True)
class Tile:
    """A part of the local queries that attends to a part of the keys at hand.

    rows: indices into the batch, None for all of them.
    """

    rows: Tensor | None
    queries: slice
    keys: slice
    causal: bool

    def of_queries(self, tensor: Tensor) -> Tensor:
        """The tile's part of a tensor (batch, heads, queries, ...)."""
        part = tensor if self.rows is None else tensor[self.rows]
        return part[:, :, self.queries]

    def of_keys(self, tensor: Tensor) -> Tensor:
        """The tile's part of a tensor (batch, heads, keys, ...)."""
        part = tensor if self.rows is None else tensor[self.rows]
        return part[:, :, self.keys]


_ALL = slice(None)


def causal_tiles(owner: int, index: int, length: int) -> list[Tile]:
    """Tiles of a causal zigzag ring for the keys of rank `owner` at rank `index`.

    length: local positions, the early chunk before the late one.
    """
    half = length // 2
    if owner == index:
        return [Tile(None, _ALL, _ALL, causal=True)]
    if owner < index:
        # The owner's early chunk lies before all local queries, its late one after them.
        return [Tile(None, _ALL, slice(0, half), causal=False)]
    return [Tile(None, slice(half, None), _ALL, causal=False)]


def full_tiles(owner: int, length: int, key_lengths: Sequence[int]) -> list[Tile]:
    """Tiles of full attention: rows of the batch with the same number of valid keys together.

    key_lengths: valid positions of each row's whole sequence, right-padded.
    """
    valid = [min(max(total - owner * length, 0), length) for total in key_lengths]
    tiles = []
    for keys in sorted(set(valid) - {0}):
        rows = [row for row, count in enumerate(valid) if count == keys]
        everywhere = len(rows) == len(valid)
        index = None if everywhere else torch.tensor(rows)
        tiles.append(Tile(index, _ALL, slice(0, keys), causal=False))
    return tiles


class RingAttention(torch.autograd.Function):  # type: ignore[misc]
    """Attention of local queries with the keys of all ranks of a ring.

    q, k, v: (batch, heads, local positions, head_dim).
    key_lengths: see `full_tiles`; None for causal attention.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_lengths: Sequence[int] | None,
        group: Group,
        collectives: Collectives,
    ) -> Tensor:
        """Merges the blocks as they come by."""
        ctx.key_lengths, ctx.group, ctx.collectives = key_lengths, group, collectives
        out, lse = _forward(q, k, v, key_lengths, group, collectives)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        """Sends the blocks round again, together with their gradients."""
        q, k, v, out, lse = ctx.saved_tensors
        grads = _backward(grad_out, q, k, v, out, lse, ctx.key_lengths, ctx.group, ctx.collectives)
        return (*grads, None, None, None)


def _tiles(owner: int, group: Group, length: int, key_lengths: Sequence[int] | None) -> list[Tile]:
    if key_lengths is None:
        return causal_tiles(owner, group.index, length)
    return full_tiles(owner, length, key_lengths)


def _travelling(
    k: Tensor, v: Tensor, group: Group, collectives: Collectives
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Keys and values of every rank with their owner, the own ones first.

    The next ones are on their way while the caller works on the present ones.
    """
    if group.size == 1:
        yield 0, (k, v)
        return
    block = torch.stack([k, v])
    for turn in range(group.size):
        last = turn == group.size - 1
        shift = None if last else collectives.start_shift(block, group)
        yield (group.index - turn) % group.size, (block[0], block[1])
        if shift is not None:
            block = shift.wait()


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_lengths: Sequence[int] | None,
    group: Group,
    collectives: Collectives,
) -> tuple[Tensor, Tensor]:
    if group.size == 1:
        tiles = _tiles(0, group, q.shape[2], key_lengths)
        if len(tiles) == 1:
            tile = tiles[0]
            return block_forward(q, tile.of_keys(k), tile.of_keys(v), tile.causal)
    out = torch.zeros_like(q)
    lse = torch.full(q.shape[:3], -torch.inf, dtype=torch.float32, device=q.device)
    for owner, (keys, values) in _travelling(k, v, group, collectives):
        for tile in _tiles(owner, group, q.shape[2], key_lengths):
            tile_out, tile_lse = block_forward(
                tile.of_queries(q), tile.of_keys(keys), tile.of_keys(values), tile.causal
            )
            _merge(out, lse, tile_out, tile_lse, tile)
    return out, lse


def _merge(out: Tensor, lse: Tensor, tile_out: Tensor, tile_lse: Tensor, tile: Tile) -> None:
    """Adds a tile's result to the running result, in place."""
    old_out, old_lse = tile.of_queries(out), tile.of_queries(lse)
    new_lse = torch.logaddexp(old_lse, tile_lse)
    new_out = old_out * (old_lse - new_lse).exp_().unsqueeze(-1)
    new_out.addcmul_(tile_out, (tile_lse - new_lse).exp_().unsqueeze(-1))
    _write(out, tile, new_out)
    _write(lse, tile, new_lse)


def _write(target: Tensor, tile: Tile, values: Tensor) -> None:
    if tile.rows is None:
        target[:, :, tile.queries] = values
    else:
        target[tile.rows, :, tile.queries] = values


def _backward(
    grad_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    key_lengths: Sequence[int] | None,
    group: Group,
    collectives: Collectives,
) -> tuple[Tensor, Tensor, Tensor]:
    tiles = _tiles(group.index, group, q.shape[2], key_lengths)
    if group.size == 1 and len(tiles) == 1 and tiles[0].keys == _ALL:
        return block_backward(grad_out, q, k, v, out, lse, tiles[0].causal)
    grad_q = torch.zeros_like(q)
    returning: Shift | None = None
    for owner, (keys, values) in _travelling(k, v, group, collectives):
        grads = torch.zeros((2, *k.shape), dtype=k.dtype, device=k.device)
        for tile in _tiles(owner, group, q.shape[2], key_lengths):
            tile_q, tile_k, tile_v = block_backward(
                tile.of_queries(grad_out),
                tile.of_queries(q),
                tile.of_keys(keys),
                tile.of_keys(values),
                tile.of_queries(out),
                tile.of_queries(lse),
                tile.causal,
            )
            _add(grad_q, tile.rows, tile.queries, tile_q)
            _add(grads[0], tile.rows, tile.keys, tile_k)
            _add(grads[1], tile.rows, tile.keys, tile_v)
        if returning is not None:
            grads += returning.wait()
        if group.size > 1:
            returning = collectives.start_shift(grads, group)
    if returning is not None:
        grads = returning.wait()
    return grad_q, grads[0], grads[1]


def _add(target: Tensor, rows: Tensor | None, part: slice, values: Tensor) -> None:
    """Adds to rows and positions of `target`, in place."""
    if rows is None:
        target[:, :, part] += values
    else:
        target[rows, :, part] += values
