"""Peak memory of several configurations on four ranks, as one program."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from reference_cases import RING4, ULYSSES2, ULYSSES4, WORLD_SIZE, content

CASES = {
    "plain": {},
    "plain again": {},
    "ulysses 2": ULYSSES2,
    "ulysses 4": ULYSSES4,
    "ring 4": RING4,
    "offload 2": {"offload_blocks": 2},
    "offload 4": {"offload_blocks": 4},
    "chunk 32": {"loss_chunk_size": 32},
    "micro batch 1": {"micro_batch_size": 1},
    "offload 4 again": {"offload_blocks": 4},
    "ulysses 4, five times as long": {**ULYSSES4, "steps": 10, "memory_steps": 10},
}


def run_cases(results: Path) -> None:
    """Runs every case as one of four ranks; rank 0 writes the peaks of all ranks."""
    import torch
    import torch.distributed as dist

    from launch.rank.recorder import Recorder
    from launch.reference.config import parse_config
    from launch.reference.data.generate import ensure_dataset
    from launch.reference.device import open_device
    from launch.reference.layout import Layout
    from launch.reference.memory import open_meter
    from launch.reference.parallel import GroupFactory, make_groups
    from launch.reference.train import train

    torch.set_num_threads(1)
    device = open_device("cpu", 0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    factory = GroupFactory(rank, WORLD_SIZE)
    peaks = {}
    for name, changes in CASES.items():
        config = parse_config(content("memory_vlm", changes))
        folder = ensure_dataset(config)
        layout = Layout.of(config, WORLD_SIZE)
        groups = make_groups(layout, factory, rank)
        meter = open_meter(device)
        train(config, layout, groups, device, folder, meter, Recorder(None))
        gathered = [None] * WORLD_SIZE
        dist.all_gather_object(gathered, meter.peak_allocated)
        peaks[name] = gathered
    if rank == 0:
        results.write_text(json.dumps(peaks))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run_cases(Path(sys.argv[1]))
