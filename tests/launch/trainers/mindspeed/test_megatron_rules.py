"""Which points the Megatron backends' rules let through, case by case.

That MindSpeed-MM itself refuses and takes the same ones was asked by
benchmarks/mindspeed_acceptance.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from megatron_checkout import make_checkout, trainer_for

from launch.trainers.mindspeed.megatron import MindspeedMegatron

USP = {"sp_degree": 4, "sp_algorithm": "usp", "ulysses_degree": 2}
PIPELINE = {"pipeline_parallel_size": 2, "tensor_parallel_size": 1}
ALONE = {"pipeline_parallel_size": 1}
OFFLOAD = {
    "recompute": "full",
    "recompute_method": "block",
    "recompute_layers": 4,
    "skip_attention_layers": 4,
    "activation_offload": True,
}
FULL = {"recompute": "full", "recompute_method": "uniform", "recompute_layers": 2}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("checkout") / "mm")


def hetero(**values: Any) -> dict[str, Any]:
    return {"hetero_parallel": True, "pipeline_parallel_size": 1, **values}


def reasons(trainer: MindspeedMegatron, point: Mapping[str, Any]) -> list[str]:
    """Why the point is illegal on eight ranks."""
    trainer.check({name: [value] for name, value in point.items()})
    facts = {"model": trainer.dims, "cluster": {"world_size": 8}}
    scope = {**facts, **trainer.fixed, **point}
    return [rule.reason for rule in trainer.rules if not rule.expression.holds(scope)]


@pytest.mark.parametrize("name", ["vlm", "dit", "sharded", "chat"])
def test_the_users_own_launch_is_legal(checkout: Path, name: str) -> None:
    assert reasons(trainer_for(checkout, name), {}) == []


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("vlm", {"tensor_parallel_size": 4}),
        ("vlm", {**ALONE, "micro_batch_size": 3}),
        ("vlm", {**ALONE, **USP}),
        ("vlm", {**ALONE, "sp_degree": 4, "sp_algorithm": "ulysses"}),
        ("vlm", {**ALONE, "sp_degree": 4, "sp_algorithm": "ring", "ring_window": 2}),
        ("vlm", {"pipeline_parallel_size": 4, "pipeline_split": [1, 3, 4, 4]}),
        ("vlm", {"pipeline_parallel_size": 4, "pipeline_split": "even"}),
        ("vlm", {"virtual_pipeline_size": 2, "pipeline_split": [3, 3, 3, 3]}),
        ("vlm", {**PIPELINE, "pipeline_split": "even", **FULL, "recompute_layers": 3}),
        ("vlm", {**FULL, "recompute_layers": 1}),
        ("vlm", {"overlap_grad_reduce": True, "overlap_param_gather": True}),
        ("vlm", {"bucket_order": "reordering"}),
        ("vlm", hetero(tensor_parallel_size=4, micro_batch_size=4)),
        ("vlm", hetero(tensor_parallel_size=4, micro_batch_size=4, image_encoder_sp_degree=2)),
        ("vlm", hetero(pipeline_parallel_size=2, micro_batch_size=2, pipeline_split="even")),
        (
            "vlm",
            hetero(pipeline_parallel_size=2, encoder_micro_batch_scale=2, micro_batch_size=1),
        ),
        ("dit", OFFLOAD),
        ("dit", {"pipeline_parallel_size": 2}),
        ("dit", {"sp_degree": 8, "sp_algorithm": "ulysses"}),
        ("dit", {**USP, "layerzero": False}),
        ("dit", {"recompute": "full", "recompute_method": "uniform", "recompute_layers": 1}),
        ("sharded", {"fsdp_size": 2, "sp_degree": 2, "sp_algorithm": "ulysses"}),
        ("sharded", {**OFFLOAD, "recompute_modules": None}),
        ("chat", {"loss_chunk": "static", "loss_chunk_size": 64, "micro_batch_size": 2}),
        ("chat", {"sp_degree": 4, "sp_algorithm": "ring", "activation_offload": True}),
    ],
)
def test_what_runs_is_legal(checkout: Path, name: str, point: dict[str, Any]) -> None:
    assert reasons(trainer_for(checkout, name), point) == []


@pytest.mark.parametrize(
    ("name", "point", "reason"),
    [
        ("vlm", {"tensor_parallel_size": 3}, "together divide the number of ranks"),
        ("vlm", {**ALONE, "micro_batch_size": 2}, "whole number of micro-batches"),
        ("vlm", {**ALONE, **USP, "ulysses_degree": 4}, "ring of more than one"),
        ("vlm", {**ALONE, "sp_degree": 8, "sp_algorithm": "ulysses"}, "Ulysses splits"),
        (
            "vlm",
            {**ALONE, "sp_degree": 4, "sp_algorithm": "ring", "ring_window": 4},
            "the inner ring",
        ),
        ("vlm", {**ALONE, "sp_degree": 4, "sp_algorithm": "ring", "ring_window": 3}, "inner"),
        ("vlm", {"tensor_parallel_size": 8, **ALONE}, "divides the decoder's"),
        ("vlm", {"pipeline_parallel_size": 4}, "layers of every stage"),
        ("vlm", {"pipeline_parallel_size": 4, "pipeline_split": [6, 6]}, "every stage"),
        ("vlm", {**ALONE, "virtual_pipeline_size": 2}, "virtual stages need a pipeline"),
        (
            "vlm",
            {"virtual_pipeline_size": 2, "pipeline_split": "even", "micro_batch_size": 2},
            "groups of the pipeline's size",
        ),
        ("vlm", {"overlap_param_gather": True}, "overlap of gradient reduction"),
        (
            "vlm",
            {"overlap_grad_reduce": True, "overlap_param_gather": True}
            | {"distributed_optimizer": False},
            "needs the distributed optimizer",
        ),
        ("vlm", {"expert_parallel_size": 2}, "no experts"),
        ("vlm", {**FULL, "recompute_layers": 5, **ALONE}, "whole groups of a stage's layers"),
        ("vlm", {**FULL, "recompute_layers": 0}, "whole groups of a stage's layers"),
        ("vlm", {"encoder_micro_batch_scale": 2}, "trains more samples"),
        ("vlm", hetero(encoder_micro_batch_scale=2), "trains more samples"),
        ("vlm", hetero(tensor_parallel_size=4), "dealt out to the image encoder's"),
        (
            "vlm",
            hetero(image_encoder_tensor_parallel_size=2),
            "outputs cannot be handed back",
        ),
        (
            "vlm",
            hetero(tensor_parallel_size=4, micro_batch_size=4)
            | {"image_encoder_pipeline_parallel_size": 2},
            "no pipeline of its own",
        ),
        ("vlm", hetero(sp_degree=4, sp_algorithm="ring", micro_batch_size=4), "Ulysses alone"),
        (
            "vlm",
            hetero(tensor_parallel_size=2, micro_batch_size=2, sequence_parallel=True),
            "the image encoder needs tensor parallelism too",
        ),
        ("dit", {"tensor_parallel_size": 2}, "cannot be split by tensors"),
        ("dit", {"pipeline_parallel_size": 4}, "layers of every stage"),
        ("dit", {"sp_degree": 3}, "number of ranks"),
        ("dit", {"recompute": "selective"}, "selective"),
        ("dit", FULL, "left out of the model"),
        ("dit", {**OFFLOAD, "skip_attention_layers": 0}, "with skip_attention_layers"),
        ("dit", {**OFFLOAD, "recompute_layers": 12}, "no layer whose attention"),
        ("dit", {**OFFLOAD, "recompute": "none"}, "with skip_attention_layers"),
        ("sharded", {"fsdp_size": 3}, "FSDP shard divides"),
        ("sharded", OFFLOAD, "recompute twice"),
        ("sharded", {"sp_degree": 16, "sp_algorithm": "ulysses"}, "number of ranks"),
        ("chat", {"loss_chunk": "dynamic", "loss_total_chunk_size": 1}, "one token a sample"),
        ("chat", {"bucket_order": "bucketing"}, "the collators qwen2vl and internvl"),
    ],
)
def test_what_fails_or_does_other_work_is_not(
    checkout: Path, name: str, point: dict[str, Any], reason: str
) -> None:
    assert any(reason in one for one in reasons(trainer_for(checkout, name), point))


def test_a_ring_of_a_dit_needs_the_general_mask(checkout: Path, tmp_path: Path) -> None:
    root = make_checkout(tmp_path / "mm")
    text = (root / "dit.sh").read_text(encoding="utf-8")
    text = text.replace("--attention-mask-type general", "--bf16")
    (root / "dit.sh").write_text(text, encoding="utf-8")
    ring = {"sp_degree": 2, "sp_algorithm": "ring"}
    assert any("must be general" in one for one in reasons(trainer_for(root, "dit"), ring))
    assert reasons(trainer_for(checkout, "dit"), ring) == []


def test_encoders_that_are_trained_keep_hetero_parallel_from_a_pipeline(tmp_path: Path) -> None:
    root = make_checkout(tmp_path / "mm")
    path = root / "conf/model.json"
    text = path.read_text(encoding="utf-8").replace('"freeze": true', '"freeze": false')
    path.write_text(text, encoding="utf-8")
    point = hetero(pipeline_parallel_size=2, micro_batch_size=2)
    assert any("must be frozen" in one for one in reasons(trainer_for(root, "vlm"), point))


def test_what_a_point_leaves_out_is_judged_as_the_base_has_it(checkout: Path) -> None:
    """None is what an inactive parameter has in a rule's scope."""
    trainer = trainer_for(checkout, "vlm")
    facts = {"model": trainer.dims, "cluster": {"world_size": 8}}
    inactive = {"encoder_micro_batch_scale": None, "virtual_pipeline_size": None}
    legal = {**facts, **trainer.fixed, **inactive}
    assert all(rule.expression.holds(legal) for rule in trainer.rules)
    four = {**legal, "pipeline_parallel_size": 4, "pipeline_split": None}
    assert not all(rule.expression.holds(four) for rule in trainer.rules)
