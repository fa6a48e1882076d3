"""Makes batches ahead of the steps that use them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from launch.reference.config import Config
from launch.reference.data.batches import BatchSource, DitBatch, VlmBatch, open_source
from launch.reference.layout import Layout


class Loader:
    """The batches of `steps` in order, one decoding thread and one batch ahead per worker.

    workers: 0 makes each batch when it is asked for.
    """

    def __init__(self, source: BatchSource, steps: Iterable[int], workers: int) -> None:
        self._source = source
        self._steps = iter(steps)
        self._ahead: deque[Future[VlmBatch | DitBatch]] = deque()
        self._pool = ThreadPoolExecutor(workers, "loader") if workers else None
        for _ in range(workers):
            self._request()

    def next(self) -> VlmBatch | DitBatch:
        """The next step's batch; waits until it is made."""
        if self._pool is None:
            return self._source.batch(next(self._steps))
        batch = self._ahead.popleft().result()
        self._request()
        return batch

    def wait(self) -> None:
        """Waits until the batches that are being made ahead are there."""
        for batch in self._ahead:
            batch.result()

    def _request(self) -> None:
        step = next(self._steps, None)
        if step is not None and self._pool is not None:
            self._ahead.append(self._pool.submit(self._source.batch, step))


def open_loader(config: Config, layout: Layout, rank: int, folder: Path) -> Loader:
    """The loader of a rank; `folder` holds the data set."""
    source = open_source(config, layout, rank, folder)
    # How many steps a measuring trial makes is known only at its end.
    steps = itertools.count() if config.measurement else range(config.training.steps)
    return Loader(source, steps, config.data.workers)
