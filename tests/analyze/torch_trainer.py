"""A small training loop under torch.profiler, for one rank or several over gloo.

It writes `trace.json`, and beside it what torch itself says of the trace.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 192


def train(folder: Path, *, ranges: bool) -> None:
    """Six steps, of which three are recorded."""
    torch.manual_seed(0)
    model: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)
    )
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    batches = iter(DataLoader(TensorDataset(torch.randn(512, WIDTH)), batch_size=64))

    def phase(name: str) -> AbstractContextManager[Any]:
        return record_function(name) if ranges else nullcontext()

    def write(prof: Any) -> None:
        prof.export_chrome_trace(str(folder / "trace.json"))
        rows = [
            [e.key, e.count, e.cpu_time_total, e.self_cpu_time_total] for e in prof.key_averages()
        ]
        (folder / "averages.json").write_text(json.dumps(rows))

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        record_shapes=True,
        profile_memory=True,
        on_trace_ready=write,
    ) as prof:
        for _ in range(6):
            with phase("data_loading"):
                (batch,) = next(batches)
            with phase("forward_backward"):
                loss = model(batch).square().mean()
                loss.backward()
            with phase("post_processing"):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            if dist.is_initialized():
                with phase("communication"):
                    dist.all_reduce(loss.detach())
            prof.step()


def main() -> None:
    """One of two ranks. Arguments: the rank, the group's file, the folder."""
    torch.set_num_threads(1)
    rank, store, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    train(folder, ranges=True)
    dist.barrier()
    # Everything is written. Gloo's threads have ended a process with SIGABRT while Python shut
    # down ("terminate called without an active exception"): once in many runs of CI.
    os._exit(0)


if __name__ == "__main__":
    main()
