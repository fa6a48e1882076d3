"""Collectives that are timed as communication, and their autograd-aware forms."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from launch.reference.parallel import Group
from launch.reference.phases import PhaseTimer


class Collectives:
    """Runs collectives under the timer; a group of one exchanges nothing.

    settle: while it is set, a collective ends when the backend's threads have let go of its
    tensors. Else the last of them is at times freed by such a thread, which a memory meter
    of this thread does not see.
    """

    def __init__(self, timer: PhaseTimer) -> None:
        self._timer = timer
        self.settle = False

    def all_reduce_sum(self, tensor: Tensor, group: Group) -> None:
        """Sums `tensor` over the group, in place."""
        if group.handle is not None:
            with self._timer.phase("communication"):
                dist.all_reduce(tensor, group=group.handle)

    def all_to_all(self, tensor: Tensor, group: Group) -> Tensor:
        """Block i of dimension 0 goes to rank i; block j of the result came from rank j."""
        source = tensor.contiguous()
        received = torch.empty_like(source)
        self._exchange(received, source, None, None, group)
        return received

    def exchange_rows(
        self, rows: Tensor, send: Sequence[int], receive: Sequence[int], group: Group
    ) -> Tensor:
        """Sends `send[i]` rows of `(rows, ...)` to rank i; gets `receive[j]` from rank j."""
        if group.handle is None:
            return rows
        received = rows.new_empty((sum(receive), *rows.shape[1:]))
        self._exchange(received, rows.contiguous(), list(receive), list(send), group)
        return received

    def _exchange(
        self,
        received: Tensor,
        source: Tensor,
        receive: list[int] | None,
        send: list[int] | None,
        group: Group,
    ) -> None:
        held = [tensor._use_count() for tensor in (received, source)]
        with self._timer.phase("communication"):
            dist.all_to_all_single(received, source, receive, send, group=group.handle)
            while self.settle and _held_elsewhere((received, source), held):
                time.sleep(0)

    def start_shift(self, tensor: Tensor, group: Group) -> Shift:
        """Starts passing `tensor` to the next rank of the ring."""
        return Shift(tensor, group, self._timer)


def _held_elsewhere(tensors: Sequence[Tensor], held: Sequence[int]) -> bool:
    """Whether a tensor is held more often than it was."""
    return any(now._use_count() > before for now, before in zip(tensors, held, strict=True))


class Shift:
    """A tensor on its way round a ring: to the next rank, from the previous one."""

    def __init__(self, tensor: Tensor, group: Group, timer: PhaseTimer) -> None:
        self._timer = timer
        self._sent = tensor
        self._received = torch.empty_like(tensor)
        following = group.ranks[(group.index + 1) % group.size]
        previous = group.ranks[(group.index - 1) % group.size]
        operations = [
            dist.P2POp(dist.isend, self._sent, following, group.handle),
            dist.P2POp(dist.irecv, self._received, previous, group.handle),
        ]
        with timer.phase("communication"):
            self._works = dist.batch_isend_irecv(operations)

    def wait(self) -> Tensor:
        """What the previous rank sent."""
        with self._timer.phase("communication"):
            for work in self._works:
                work.wait()
        return self._received


class AllToAll(torch.autograd.Function):  # type: ignore[misc]
    """`Collectives.all_to_all` whose backward sends the gradient blocks back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group, collectives: Collectives) -> Tensor:
        """Blocks of dimension 0 change places with the other ranks'."""
        ctx.group, ctx.collectives = group, collectives
        return collectives.all_to_all(tensor, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The transposed exchange is the exchange itself."""
        return ctx.collectives.all_to_all(gradient, ctx.group), None, None


class ExchangeRows(torch.autograd.Function):  # type: ignore[misc]
    """`Collectives.exchange_rows` whose backward returns the rows' gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        send: Sequence[int],
        receive: Sequence[int],
        group: Group,
        collectives: Collectives,
    ) -> Tensor:
        """Rows go where they are needed."""
        ctx.send, ctx.receive, ctx.group, ctx.collectives = send, receive, group, collectives
        received = collectives.exchange_rows(rows, send, receive, group)
        return received.view_as(received) if received is rows else received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Gradients go back the way the rows came."""
        returned = ctx.collectives.exchange_rows(gradient, ctx.receive, ctx.send, ctx.group)
        return returned, None, None, None, None
