"""Configurations whose gradients must equal the plain run's, and the program that makes them."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
WORLD_SIZE = 4

ULYSSES2 = {"sp_degree": 2, "sp_algorithm": "ulysses"}
ULYSSES4 = {"sp_degree": 4, "sp_algorithm": "ulysses"}
RING2 = {"sp_degree": 2, "sp_algorithm": "ring"}
RING4 = {"sp_degree": 4, "sp_algorithm": "ring"}
USP4 = {"sp_degree": 4, "sp_algorithm": "usp", "ulysses_degree": 2}

# Valid for both models. Keys are unique over all sections, so the section is left out.
SHARED: dict[str, dict[str, Any]] = {
    "data parallel": {},
    "micro batch of two": {"micro_batch_size": 2},
    "ulysses 2": ULYSSES2,
    "ulysses 4": ULYSSES4,
    "ring 2": RING2,
    "ring 4": RING4,
    "usp 4": USP4,
    "offload some": {"offload_blocks": 1},
    "offload all": {"offload_blocks": 3},
    "bucketing": {"bucket_order": "bucketing", "micro_batch_size": 2},
    "reordering": {"bucket_order": "reordering", "micro_batch_size": 2},
    "ulysses, padding": {**ULYSSES2, "micro_batch_size": 4},
    "ring, padding": {**RING4, "micro_batch_size": 4},
    "usp, padding": {**USP4, "micro_batch_size": 8},
    "ulysses, offload": {**ULYSSES4, "offload_blocks": 2, "micro_batch_size": 2},
    "ring, offload": {**RING4, "offload_blocks": 3, "micro_batch_size": 2},
    "ring, bucketing": {**RING2, "bucket_order": "bucketing", "micro_batch_size": 2},
    "usp, reordering": {**USP4, "bucket_order": "reordering", "micro_batch_size": 2},
    "offload, reordering": {"offload_blocks": 2, "bucket_order": "reordering"},
}

VLM_ONLY: dict[str, dict[str, Any]] = {
    "chunks": {"loss_chunk_size": 5, "micro_batch_size": 2},
    "one chunk": {"loss_chunk_size": 512},
    "encoder sp 2": {"encoder_sp_degree": 2},
    "encoder sp 4": {"encoder_sp_degree": 4, "micro_batch_size": 2},
    "encoder scale 2": {"encoder_micro_batch_scale": 2},
    "ring, chunks": {**RING4, "loss_chunk_size": 5, "micro_batch_size": 2},
    "ulysses, chunks": {**ULYSSES2, "loss_chunk_size": 8},
    "offload, chunks": {"offload_blocks": 3, "loss_chunk_size": 5, "micro_batch_size": 2},
    "fewer images than encoder groups": {**RING4},
    "ulysses, encoder sp": {**ULYSSES4, "encoder_sp_degree": 2, "micro_batch_size": 2},
    "ring, encoder scale": {**RING4, "encoder_micro_batch_scale": 4},
    "usp, encoder sp and scale": {
        **USP4,
        "encoder_sp_degree": 4,
        "encoder_micro_batch_scale": 2,
        "micro_batch_size": 2,
    },
    "offload, encoder sp and scale": {
        **ULYSSES2,
        "offload_blocks": 2,
        "encoder_sp_degree": 2,
        "encoder_micro_batch_scale": 2,
        "bucket_order": "bucketing",
    },
}

CASES = {
    **{f"vlm: {name}": ("small_vlm", change) for name, change in {**SHARED, **VLM_ONLY}.items()},
    **{f"dit: {name}": ("small_dit", change) for name, change in SHARED.items()},
}


def content(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """A small configuration with some of its keys set, whichever section they are in."""
    values = copy.deepcopy(yaml.safe_load((HERE / f"{name}.yaml").read_text()))
    home = {
        "parallel": ("sp_", "ulysses", "encoder_"),
        "features": ("offload", "loss", "bucket"),
        "training": ("micro_", "steps", "global_"),
        "device": ("memory_bytes",),
        "measurement": ("memory_steps",),
    }
    for key, value in changes.items():
        section = next(name for name, starts in home.items() if key.startswith(starts))
        values.setdefault(section, {})[key] = value
    return values


def run_cases(results: Path) -> None:
    """Runs every case as one of four ranks; rank 0 writes `results`."""
    import torch
    import torch.distributed as dist

    from launch.reference import offload
    from launch.reference.config import parse_config
    from launch.reference.data.generate import ensure_dataset
    from launch.reference.device import open_device
    from launch.reference.layout import Layout
    from launch.reference.parallel import GroupFactory, make_groups
    from launch.reference.run import gradients_of_global_batch

    offload.MINIMUM_BYTES = 0
    torch.set_num_threads(1)
    device = open_device("cpu", 0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    factory = GroupFactory(rank, WORLD_SIZE)
    found = {}
    for name, (base, changes) in CASES.items():
        config = parse_config(content(base, changes))
        folder = ensure_dataset(config)
        layout = Layout.of(config, WORLD_SIZE)
        groups = make_groups(layout, factory, rank)
        found[name] = gradients_of_global_batch(config, layout, groups, device, folder)
    if rank == 0:
        torch.save(found, results)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run_cases(Path(sys.argv[1]))
