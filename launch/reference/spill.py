"""Stores for offloaded activations: a spill file on cpu, pinned host memory elsewhere."""

from __future__ import annotations

import mmap
import os
import queue
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from launch.reference.device import Device
from launch.reference.offload import Store

# The file grows by at least this much; room is reused from one micro-batch to the next.
_SEGMENT_BYTES = 32 << 20
_ALIGNMENT = 64


@dataclass
class _Copy:
    """One copy for the background thread. The arrays are views, and never own tensors."""

    source: NDArray[Any] | None
    target: NDArray[Any] | None
    done: threading.Event = field(default_factory=threading.Event)


class SpillStore:
    """Keeps tensors in an unlinked temporary file, written and read by one thread.

    The file is mapped as shared, so its pages are the page cache's: neither tensor
    memory nor private memory of the process (see `cpu_memory`).
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._file_bytes = 0
        self._segments: list[NDArray[np.uint8]] = []
        self._segment = 0
        self._offset = 0
        self._copies: queue.SimpleQueue[_Copy] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="activation-spill", daemon=True).start()

    def save(self, tensor: Tensor) -> SpilledTensor:
        """Starts writing a tensor to the file."""
        room = self._room(tensor.nbytes)
        view = tensor.numpy()
        place = room.view(view.dtype).reshape(view.shape)
        return SpilledTensor(self, tensor, place, self.start_copy(view, place))

    def reset(self) -> None:
        """The next tensor is written to the file's start."""
        self._segment = self._offset = 0

    def start_copy(self, source: NDArray[Any], target: NDArray[Any]) -> threading.Event:
        """Hands a copy to the thread; the event says that it is made."""
        copy = _Copy(source, target)
        self._copies.put(copy)
        return copy.done

    def _room(self, nbytes: int) -> NDArray[np.uint8]:
        while self._segment < len(self._segments):
            segment = self._segments[self._segment]
            if self._offset + nbytes <= len(segment):
                start = self._offset
                self._offset = -(-(start + nbytes) // _ALIGNMENT) * _ALIGNMENT
                return segment[start : start + nbytes]
            self._segment += 1
            self._offset = 0
        self._grow(nbytes)
        return self._room(nbytes)

    def _grow(self, nbytes: int) -> None:
        size = -(-max(nbytes, _SEGMENT_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE
        # Reserves the disk's blocks: a full disk is an error here, not a signal later.
        os.posix_fallocate(self._file.fileno(), self._file_bytes, size)
        mapped = mmap.mmap(self._file.fileno(), size, mmap.MAP_SHARED, offset=self._file_bytes)
        self._file_bytes += size
        self._segments.append(np.frombuffer(mapped, dtype=np.uint8))

    def _run(self) -> None:
        while True:
            copy = self._copies.get()
            assert copy.source is not None
            assert copy.target is not None
            np.copyto(copy.target, copy.source)
            # The arrays hold tensors; those must be freed by the rank's own thread, which
            # is the one whose memory is observed, so this thread lets go before it tells.
            copy.source = copy.target = None
            done = copy.done
            del copy
            done.set()


class SpilledTensor:
    """A tensor in the spill file."""

    def __init__(
        self, store: SpillStore, tensor: Tensor, place: NDArray[Any], written: threading.Event
    ) -> None:
        self._store = store
        self._tensor: Tensor | None = tensor
        self._place = place
        self._written = written
        self._read: threading.Event | None = None

    def release(self) -> None:
        """Waits for the write, then lets go of the memory."""
        self._written.wait()
        self._tensor = None

    def fetch(self) -> None:
        """Starts reading the file into new memory."""
        if self._tensor is None:
            self._tensor = torch.from_numpy(self._place).new_empty(self._place.shape)
            self._read = self._store.start_copy(self._place, self._tensor.numpy())

    def take(self) -> Tensor:
        """The tensor; waits for the read."""
        self.fetch()
        if self._read is not None:
            self._read.wait()
        assert self._tensor is not None
        return self._tensor

    def drop(self) -> None:
        """Lets go of the memory; the read must have ended, for the thread writes to it."""
        if self._read is not None:
            self._read.wait()
        self._tensor = None


class PinnedStore:
    """Keeps tensors in pinned host memory, copied on a stream of its own.

    For cuda and npu; not run so far.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._side = torch.Stream(device)
        self._free: dict[tuple[torch.dtype, torch.Size], list[Tensor]] = {}
        self._used: list[Tensor] = []

    def save(self, tensor: Tensor) -> PinnedTensor:
        """Starts the copy to the host."""
        host = self._host(tensor)
        self._side.wait_stream(torch.accelerator.current_stream())
        with self._side:
            host.copy_(tensor, non_blocking=True)
        return PinnedTensor(tensor, host, self._side)

    def reset(self) -> None:
        """Host buffers may be written again."""
        for host in self._used:
            self._free.setdefault((host.dtype, host.shape), []).append(host)
        self._used.clear()

    def _host(self, tensor: Tensor) -> Tensor:
        free = self._free.get((tensor.dtype, tensor.shape))
        host = (
            free.pop() if free else torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        )
        self._used.append(host)
        return host


class PinnedTensor:
    """A tensor in pinned host memory."""

    def __init__(self, tensor: Tensor, host: Tensor, side: torch.Stream) -> None:
        self._tensor: Tensor | None = tensor
        self._device = tensor.device
        self._host = host
        self._side = side
        self._copied = side.record_event()

    def release(self) -> None:
        """Later work of the current stream, which may reuse the memory, waits for the copy."""
        torch.accelerator.current_stream().wait_event(self._copied)
        self._tensor = None

    def fetch(self) -> None:
        """Starts the copy back."""
        if self._tensor is None:
            self._tensor = torch.empty_like(self._host, device=self._device, pin_memory=False)
            self._side.wait_stream(torch.accelerator.current_stream())
            with self._side:
                self._tensor.copy_(self._host, non_blocking=True)
            self._copied = self._side.record_event()

    def take(self) -> Tensor:
        """The tensor; the current stream waits for the copy, the host does not."""
        self.fetch()
        torch.accelerator.current_stream().wait_event(self._copied)
        assert self._tensor is not None
        return self._tensor

    def drop(self) -> None:
        """Lets go of the memory."""
        self._tensor = None


def open_store(device: Device) -> Store:
    """The store for a rank's offloaded activations."""
    if device.type == "cpu":
        return SpillStore()
    return PinnedStore(device.torch_device)
