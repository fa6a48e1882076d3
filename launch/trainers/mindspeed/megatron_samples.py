"""Which samples meet in a batch: parameters <-> `dataloader_param` of the data file.

Source: mindspeed_mm/data/dataloader/{dataloader,sampler,bucket_manager}.py at commit 57069cd5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch.trainers.mindspeed.megatron_files import OpenFiles

_SAMPLER = "data:dataloader_param.sampler_type"
_BUCKETS, _RANDOM, GROUPED = "BucketBatchSampler", "BaseRandomBatchSampler", "LengthGroupedSampler"
_PRIORITY = "data:dataloader_param.priority_mode"
_MODES: Mapping[str, str] = {
    "bucketing": "data_bucketing_img",
    "reordering": "data_reordering_img",
}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "data": ("group_data",),
    "frame": ("group_frame",),
    "resolution": ("group_resolution",),
    "frame_and_resolution": ("group_frame", "group_resolution"),
}
_FLAGS = ("group_data", "group_frame", "group_resolution")
BUCKET_COLLATORS = ("qwen2vl", "internvl")
"""Collators that the bucket sampler knows; with another one it fails."""


def samples_of(files: OpenFiles) -> dict[str, Any]:
    """What the base says, and what rules read besides."""
    sampler = files.get(_SAMPLER, "stateful_distributed_sampler")
    mode = files.get(_PRIORITY, _MODES["bucketing"])
    orders = {native: order for order, native in _MODES.items()}
    return {
        "bucket_order": orders.get(mode, mode) if sampler == _BUCKETS else "none",
        "length_grouping": _grouping(files) if sampler == GROUPED else "none",
        "sampler": sampler,
        "collator": files.get("data:dataloader_param.collate_param.model_name"),
    }


def bucket_settings(files: OpenFiles, order: str) -> dict[str, Any]:
    """The keys to set for an order of buckets, none where the base has it."""
    present = samples_of(files)
    if present["bucket_order"] == order:
        return {}
    if order == "none":
        return {_SAMPLER: _RANDOM}
    return {_SAMPLER: _BUCKETS, _PRIORITY: _MODES[order]}


def grouping_settings(files: OpenFiles, grouping: str) -> dict[str, Any]:
    """The keys to set for groups of samples alike, none where the base has them."""
    if samples_of(files)["length_grouping"] == grouping:
        return {}
    flags = {f"data:dataloader_param.{flag}": flag in _GROUPS[grouping] for flag in _FLAGS}
    return {_SAMPLER: GROUPED, **flags}


def _grouping(files: OpenFiles) -> str:
    given = {flag for flag in _FLAGS if files.get(f"data:dataloader_param.{flag}", False)}
    named = {frozenset(flags): name for name, flags in _GROUPS.items()}
    return named.get(frozenset(given), "+".join(sorted(given)))
