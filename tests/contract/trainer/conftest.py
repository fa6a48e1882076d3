"""The trainers that the contract holds for, each with points of its own.

To add one: write a `_name(folder) -> Case` below and put it into `TRAINERS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autotune.config.compose import compose_config
from autotune.ports import Trainer
from launch.trainers.command import CommandTrainer
from launch.trainers.reference import ReferenceTrainer
from launch.trainers.sources import Sources
from tests.launch.trainers.mindspeed import megatron_checkout
from tests.launch.trainers.mindspeed.fsdp2_checkout import load, make_checkout


@dataclass(frozen=True)
class Case:
    """trainer: begins from files below `folder`. ranks: of a trial.

    points: legal and all different runs, the first the user's present one. same: pairs that are
    one run, said differently. choices: that the trainer takes, of every parameter of the points.
    wrong: choices that it does not take.
    """

    trainer: Trainer
    folder: Path
    ranks: int
    points: Sequence[Mapping[str, Any]]
    same: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
    choices: Mapping[str, Sequence[Any]]
    wrong: Sequence[Mapping[str, Sequence[Any]]]
    again: Callable[[], Trainer]


def _case(folder: Path, ranks: int, make: Callable[[], Trainer], **rest: Any) -> Case:
    return Case(trainer=make(), folder=folder, ranks=ranks, again=make, **rest)


def _reference(folder: Path) -> Case:
    base = compose_config(["model=tiny_vlm"]).config.model.base
    return _case(
        folder,
        4,
        lambda: ReferenceTrainer(base, "cpu", 1 << 30),
        points=[
            {"micro_batch_size": 1},
            {"micro_batch_size": 1, "loss_chunk_size": 64},
            {"micro_batch_size": 1, "sp_degree": 2, "sp_algorithm": "ring"},
        ],
        same=[({"micro_batch_size": 1}, {"micro_batch_size": 1, "offload_blocks": 0})],
        choices={
            "micro_batch_size": [1, 2],
            "loss_chunk_size": [0, 64],
            "sp_degree": [1, 2],
            "sp_algorithm": ["ring"],
        },
        wrong=[{"micro_batch_size": ["1"]}, {"sp_degree": [True]}],
    )


def _command(folder: Path) -> Case:
    (folder / "base.yaml").write_text("# mine\ntrain: {batch: 1, chunk: 64}\n")
    (folder / "net.json").write_text('{"heads": 4}')
    (folder / "model").mkdir()
    (folder / "model" / "mine.yaml").write_text(
        "# @package _global_\n"
        "defaults: [override /trainer: command]\n"
        "model: {name: mine}\n"
        "trainer:\n"
        '  command: "{python} train.py --sp {sp} {fast:--fast} -c {config} {net} -n {steps}"\n'
        "  env: {SIZE: '{batch * 2}'}\n"
        "  patch:\n"
        "    config: {file: base.yaml, set: {train.batch: '{batch}'}}\n"
        "    net: {file: net.json, set: {heads: '{sp * 4}'}}\n"
        "  window_steps: 3\n"
        "space: {parameters: {sp: {choices: [1]}}}\n"
    )
    cwd = f"trainer.cwd={folder}"
    return _case(
        folder,
        2,
        lambda: CommandTrainer.load(
            compose_config(["model=mine", cwd], folder).config, Sources(None)
        ),
        points=[
            {"sp": 1, "fast": False, "batch": 1},
            {"sp": 2, "fast": False, "batch": 1},
            {"sp": 1, "fast": True, "batch": 1},
            {"sp": 1, "fast": False, "batch": 2},
            {"fast": True, "batch": 2},
        ],
        same=[({"sp": 1, "fast": False, "batch": 1}, {"batch": 1, "fast": False, "sp": 1})],
        choices={"sp": [1, 2], "fast": [True, False], "batch": [1, 2]},
        wrong=[{"steps": [1, 2]}],
    )


def _mindspeed_fsdp2(folder: Path) -> Case:
    root = make_checkout(folder / "MindSpeed-MM")
    return _case(
        folder,
        8,
        lambda: load(root),
        points=[
            {"sp_degree": 1, "micro_batch_size": 2},
            {"sp_degree": 2, "sp_algorithm": "ulysses", "micro_batch_size": 2},
            {"sp_degree": 1, "micro_batch_size": 1},
            {"sp_degree": 1, "micro_batch_size": 2, "loss_chunk": "none"},
        ],
        same=[
            ({"sp_degree": 1}, {"sp_degree": 1, "sp_algorithm": "ulysses"}),
            ({}, {"micro_batch_size": 2, "forward_prefetch": 1, "backward_prefetch": 0}),
        ],
        choices={
            "sp_degree": [1, 2],
            "sp_algorithm": ["ulysses"],
            "micro_batch_size": [1, 2],
            "loss_chunk": ["static", "none"],
        },
        wrong=[{"sp_degree": ["2"]}, {"loss_chunk": ["some"]}, {"recompute": [1]}],
    )


def _mindspeed_megatron(folder: Path) -> Case:
    root = megatron_checkout.make_checkout(folder / "MindSpeed-MM")
    return _case(
        folder,
        8,
        lambda: megatron_checkout.trainer_for(root, "vlm"),
        points=[
            {"micro_batch_size": 1},
            {"micro_batch_size": 2},
            {"micro_batch_size": 1, "pipeline_parallel_size": 1, "tensor_parallel_size": 2},
            {"micro_batch_size": 1, "recompute": "full", "recompute_method": "block"}
            | {"recompute_layers": 2},
            {"micro_batch_size": 1, "bucket_order": "bucketing"},
        ],
        same=[
            ({}, {"micro_batch_size": 1, "pipeline_parallel_size": 2}),
            ({"sp_degree": 1}, {"sp_degree": 1, "sp_algorithm": "ring"}),
        ],
        choices={
            "micro_batch_size": [1, 2],
            "pipeline_parallel_size": [1, 2],
            "tensor_parallel_size": [1, 2],
            "recompute": ["none", "full"],
            "recompute_method": ["block"],
            "recompute_layers": [2],
            "bucket_order": ["none", "bucketing"],
        },
        wrong=[
            {"micro_batch_size": ["1"]},
            {"recompute": [True]},
            {"sp_algorithm": ["spiral"]},
            {"recompute_layers": [-1]},
        ],
    )


def _mindspeed_megatron_fsdp2(folder: Path) -> Case:
    root = megatron_checkout.make_checkout(folder / "MindSpeed-MM")
    return _case(
        folder,
        8,
        lambda: megatron_checkout.trainer_for(root, "chat"),
        points=[
            {"micro_batch_size": 1},
            {"micro_batch_size": 2},
            {"micro_batch_size": 1, "sp_degree": 2, "sp_algorithm": "ulysses"},
            {"micro_batch_size": 1, "fsdp_size": 4},
            {"micro_batch_size": 1, "loss_chunk": "static", "loss_chunk_size": 64},
        ],
        same=[({}, {"micro_batch_size": 1, "sp_degree": 1, "fsdp_size": "auto"})],
        choices={
            "micro_batch_size": [1, 2],
            "sp_degree": [1, 2],
            "sp_algorithm": ["ulysses"],
            "fsdp_size": ["auto", 4],
            "loss_chunk": ["none", "static"],
            "loss_chunk_size": [64],
        },
        wrong=[{"fsdp_size": ["all"]}, {"tensor_parallel_size": [2]}, {"loss_chunk_size": [0]}],
    )


TRAINERS: Mapping[str, Callable[[Path], Case]] = {
    "reference": _reference,
    "command": _command,
    "mindspeed_fsdp2": _mindspeed_fsdp2,
    "mindspeed_megatron": _mindspeed_megatron,
    "mindspeed_megatron_fsdp2": _mindspeed_megatron_fsdp2,
}


@pytest.fixture(params=list(TRAINERS))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    folder = tmp_path / "50% a=b,c#1 调优"
    folder.mkdir()
    return TRAINERS[request.param](folder)


@pytest.fixture
def python() -> str:
    """The interpreter that a trainer takes where the user gives none."""
    return sys.executable
