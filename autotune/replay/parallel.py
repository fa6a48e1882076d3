"""Runs over many processes; what comes out does not depend on how many there are."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from autotune.errors import UserError
from autotune.replay.case import RecordedSpace, ReplayCase
from autotune.replay.run import SeedRun, run_seed

# Numerical libraries start a thread a core in every process unless they are told otherwise.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# So many chunks a process and sampler: few enough to be cheap, enough to keep all busy.
_CHUNKS = 4

Done = Callable[[str, int], None]
"""Is told a sampler's name and how many of its seeds have just ended."""


def replay(
    case: ReplayCase,
    samplers: Mapping[str, Any],
    seeds: Sequence[int],
    processes: int,
    done: Done,
) -> dict[str, list[SeedRun]]:
    """All runs, by the sampler's name and in the order of the seeds.

    Side effects: up to `processes` child processes, all gone at the end, also after an
    interrupt. Raises UserError.
    """
    size = max(1, -(-len(seeds) // (processes * _CHUNKS)))
    chunks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    found: dict[str, dict[int, SeedRun]] = {name: {} for name in samplers}
    try:
        with _pool(min(processes, len(chunks) * len(samplers))) as pool:
            names: dict[Future[list[SeedRun]], str] = {}
            with _children_ignore_interrupts():
                for name, setting in samplers.items():
                    for chunk in chunks:
                        names[pool.submit(_run_chunk, case, setting, chunk)] = name
            for future in as_completed(names):
                runs = future.result()
                found[names[future]] |= {run.seed: run for run in runs}
                done(names[future], len(runs))
    except BrokenProcessPool:
        raise UserError(
            "a process of the replay died, as one does that runs out of memory; give fewer of "
            "them with replay.jobs=1"
        ) from None
    return {name: [runs[seed] for seed in seeds] for name, runs in found.items()}


@contextlib.contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that start afresh; when an error or an interrupt leaves, they end at once."""
    before = set(multiprocessing.active_children())
    is_through = False
    with _environment(_ONE_THREAD):
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
        try:
            yield pool
            is_through = True
        finally:
            pool.shutdown(wait=is_through, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            pool.shutdown()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the processes that start in here."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _children_ignore_interrupts() -> Iterator[None]:
    """Ctrl-C reaches the whole process group; processes that start in here leave it to us."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _run_chunk(case: ReplayCase, setting: Any, seeds: Sequence[int]) -> list[SeedRun]:
    space = RecordedSpace(case.table, case.baseline)
    return [run_seed(case, space, setting, seed) for seed in seeds]
