"""Asynchronous offload of saved activations.

Saved-tensor hooks on chosen blocks hand each saved activation to a store that moves it
off the device beside the computation, and fetch it back one block ahead in backward.
Parameters and tiny tensors stay. The device's copy is released at fixed points (when the
next block has run), so that peak memory does not depend on how quick the store is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

# Below this, moving a tensor costs more than it frees.
MINIMUM_BYTES = 16 << 10


class Stored(Protocol):
    """A tensor in a store."""

    def release(self) -> None:
        """Waits until the store has the tensor and lets go of the device's copy."""
        ...

    def fetch(self) -> None:
        """Starts bringing the tensor back; again: does nothing."""
        ...

    def take(self) -> Tensor:
        """The tensor, back on the device."""
        ...

    def drop(self) -> None:
        """Lets go of a tensor that was brought back."""
        ...


class Store(Protocol):
    """Memory off the device."""

    def save(self, tensor: Tensor) -> Stored:
        """Starts moving a tensor off the device."""
        ...

    def reset(self) -> None:
        """All stored tensors were used; their room is free again."""
        ...


class ActivationOffload:
    """Offloads what the first `blocks` blocks of a stack save for backward.

    keep: storages (by `storage_key`) that are never moved: those of the parameters.
    """

    def __init__(self, blocks: int, store: Store | None, keep: frozenset[int]) -> None:
        self._blocks = blocks if store is not None else 0
        self._store = store
        self._keep = keep
        self._saved: list[dict[Any, Stored]] = [{} for _ in range(self._blocks)]

    def after_backward(self) -> None:
        """The backward of the last forward is done: nothing that was saved is needed."""
        for index in range(self._blocks):
            self._drop(index)
            self._saved[index] = {}
        if self._store is not None:
            self._store.reset()

    def block(self, index: int) -> AbstractContextManager[None]:
        """The context in which block `index` runs forward."""
        return self._hooks(index) if index < self._blocks else nullcontext()

    @contextmanager
    def _hooks(self, index: int) -> Iterator[None]:
        saved = self._saved[index]
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: self._pack(tensor, saved), _unpack
        ):
            yield

    def after_block(self, index: int, output: Tensor) -> None:
        """Releases the previous block's activations; arranges the fetch in backward."""
        self._release(index - 1)
        if self._blocks and index <= self._blocks:
            output.register_hook(lambda _: self._before_backward(index))

    def after_stack(self, num_blocks: int) -> None:
        """The last block has run."""
        self._release(num_blocks - 1)

    def _before_backward(self, index: int) -> None:
        """Block `index` runs backward next: its activations and its predecessor's come."""
        self._drop(index + 1)
        for block in (index, index - 1):
            if 0 <= block < self._blocks:
                for stored in self._saved[block].values():
                    stored.fetch()

    def _release(self, index: int) -> None:
        if 0 <= index < self._blocks:
            for stored in self._saved[index].values():
                stored.release()

    def _drop(self, index: int) -> None:
        if 0 <= index < self._blocks:
            for stored in self._saved[index].values():
                stored.drop()

    def _pack(self, tensor: Tensor, saved: dict[Any, Stored]) -> Tensor | Stored:
        if (
            tensor.nbytes < MINIMUM_BYTES
            or not tensor.is_floating_point()
            or storage_key(tensor) in self._keep
        ):
            return tensor
        # Several operators save the same activation; it is moved once.
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor._version)
        if key not in saved:
            assert self._store is not None
            saved[key] = self._store.save(tensor.detach())
        return saved[key]


def storage_key(tensor: Tensor) -> int:
    """Identifies the memory that a tensor and its views share."""
    return int(tensor.untyped_storage().data_ptr())


def _unpack(saved: Tensor | Stored) -> Tensor:
    return saved if isinstance(saved, Tensor) else saved.take()
