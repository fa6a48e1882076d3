"""What MindSpeed-MM refuses, or takes and gets wrong: a legal and an illegal point a rule.

Source: fsdp/params/parallel_args.py, ops/flash_attn, features of MindSpeed-MM at 57069cd5, and
runs of it (section 2 of the project's facts).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import UserError
from autotune.space.definition import SpaceDefinition
from autotune.space.expression import Expression
from autotune.space.legal import LegalSpace
from launch.trainers.mindspeed.degrees import RING, ULYSSES, degrees_of, group_sizes
from launch.trainers.mindspeed.fsdp2 import MindspeedFsdp2
from launch.trainers.mindspeed.models import support_of
from tests.launch.trainers.mindspeed.fsdp2_checkout import WEIGHTS, edited, load, make_checkout


@dataclass(frozen=True)
class Case:
    """`wrong` breaks the rule whose reason begins so; `right` breaks none.

    base: keys of the YAML. text: figures of the text model in config.json. load: of the trainer.
    """

    reason: str
    wrong: dict[str, Any]
    right: dict[str, Any]
    base: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)


RINGS = {"sp_algorithm": "ring", "sp_degree": 2}
VL = {"model__model_id": "qwen3_vl_moe"}  # whose code has rings
EXPERTS = {"parallel__ep_plan": {"apply_modules": ["model.layers.{*}.mlp"]}}
OFF = {"recompute": False, "activation_offload": False}
PAD = "data__dataloader_param__collate_param__pad_to_multiple_of"

CASES = [
    Case("the SP degree divides", {"sp_degree": 4}, {"sp_degree": 2}, load={"ranks": 6}),
    Case("the FSDP shard divides", {"fsdp_size": 3}, {"fsdp_size": 4}),
    Case("the FSDP shard divides", {"fsdp_size": 16}, {"fsdp_size": "auto"}),
    Case(
        "the FSDP shard holds whole SP groups",
        {"fsdp_size": 2, "sp_degree": 4},
        {"fsdp_size": 4, "sp_degree": 4},
    ),
    Case(
        "the FSDP shard holds whole SP groups",
        {"fsdp_size": 6, "sp_degree": 4},
        {"fsdp_size": 12, "sp_degree": 4},
        load={"ranks": 12, "dims": {"global_batch_size": 12}},
    ),
    Case("the global batch is a whole", {"micro_batch_size": 3}, {"micro_batch_size": 1}),
    Case("the global batch is a whole", {"micro_batch_size": 4}, {"micro_batch_size": 2}),
    Case(
        "the global batch is a whole",
        {"micro_batch_size": 16, "sp_degree": 4},
        {"micro_batch_size": 8, "sp_degree": 4},
    ),
    Case("prefetch counts from 0", {"forward_prefetch": -1}, {"forward_prefetch": 0}),
    Case("prefetch counts from 0", {"backward_prefetch": -1}, {"backward_prefetch": 2}),
    Case(
        "USP is a ring of more than one",
        {"sp_algorithm": "usp", "sp_degree": 4, "ulysses_degree": 4},
        {"sp_algorithm": "usp", "sp_degree": 4, "ulysses_degree": 2},
        base={**VL, PAD: 16},
    ),
    Case(
        "USP is a ring of more than one",
        {"sp_algorithm": "usp", "sp_degree": 4, "ulysses_degree": 1},
        {"sp_algorithm": "ulysses", "sp_degree": 4, "ulysses_degree": 1},
        base={**VL, PAD: 16},
    ),
    Case(
        "sequence parallelism is in the flash attention alone",
        {"sp_degree": 2},
        {"sp_degree": 1},
        base={"model__attn_implementation": "sdpa"},
    ),
    Case(
        "ring attention is in flash_attention_2",
        RINGS,
        {**RINGS, "sp_algorithm": "ulysses"},
        base={**VL, "model__attn_implementation": "flash_attention_3"},
    ),
    Case(
        "sequences are padded to a multiple",
        {"sp_degree": 16},
        {"sp_degree": 8},
        load={"ranks": 16, "dims": {"global_batch_size": 32}},
    ),
    Case(
        "a ring takes two chunks",
        {"sp_algorithm": "ring", "sp_degree": 8},
        {"sp_algorithm": "ring", "sp_degree": 4},
        base=VL,
    ),
    Case(
        "ring attention cannot skip",
        {**RINGS, "skip_flash_attention_recompute": True},
        {**RINGS, "sp_algorithm": "ulysses", "skip_flash_attention_recompute": True},
        base=VL,
    ),
    Case(
        "the model has no sequence parallelism",
        {"sp_degree": 2},
        {"sp_degree": 1},
        base={"model__model_id": "qwen3_tts", "features__enable_chunk_loss": False},
    ),
    Case("the model has Ulysses alone", RINGS, {"sp_algorithm": "ulysses", "sp_degree": 2}),
    Case(
        "ring attention runs on NPUs",
        RINGS,
        {"sp_algorithm": "ulysses", "sp_degree": 2},
        base=VL,
        load={"device": "cuda"},
    ),
    Case(
        "Ulysses splits the attention heads",
        {"sp_degree": 8},
        {"sp_degree": 4},
        text={"num_attention_heads": 12, "num_key_value_heads": 4},
    ),
    Case(
        "Ulysses splits the key and value heads",
        {"sp_degree": 4},
        {"sp_degree": 2},
        text={"num_key_value_heads": 6},
    ),
    Case(
        "Ulysses splits the heads of the linear",
        {"sp_degree": 8},
        {"sp_degree": 4},
        text={"linear_num_key_heads": 4},
    ),
    Case(
        "Ulysses splits the heads of the linear",
        {"sp_degree": 8},
        {"sp_degree": 4},
        text={"linear_num_value_heads": 12},
    ),
    Case(
        "expert parallelism divides the ranks",
        {"expert_parallel_size": 3},
        {"expert_parallel_size": 4},
        base=EXPERTS,
    ),
    Case(
        "expert parallelism and the base's",
        {"expert_parallel_size": 2},
        {"expert_parallel_size": 4},
        base={**EXPERTS, "parallel__expert_fully_shard_parallel_size": 2},
    ),
    Case(
        "expert parallelism and the base's",
        {"expert_parallel_size": 2},
        {"expert_parallel_size": 1},  # as the base is: then there are no such groups
        base={**EXPERTS, "parallel__expert_fully_shard_parallel_size": 1},
    ),
    Case(
        "expert parallelism needs parallel.ep_plan",
        {"expert_parallel_size": 2},
        {"expert_parallel_size": 1},
    ),
    Case(
        "mc2 needs the fused operators",
        {"expert_dispatcher": "mc2"},
        {"expert_dispatcher": "allgather"},
        base={"parallel__ep_plan__use_npu_fused_ops": False},
    ),
    Case(
        "balancing experts works with alltoall",
        {"expert_dispatcher": "allgather"},
        {"expert_dispatcher": "alltoall"},
        base={"features__enable_ep_balance": True},
    ),
    Case(
        "expert parallelism divides the experts",
        {"expert_parallel_size": 8},
        {"expert_parallel_size": 4},
        base=EXPERTS,
    ),
    Case(
        "the model has no experts",
        {"expert_parallel_size": 2},
        {"expert_parallel_size": 1},
        base=EXPERTS,
        text={"num_experts": None},
    ),
    Case(
        "recomputation needs features.recompute_plan",
        {"recompute": True},
        {"recompute": False},
        base={"features__recompute": False, "features__recompute_plan": None},
    ),
    Case(
        "offload needs features.activation_offload_plan",
        {"activation_offload": True},
        {"activation_offload": False},
        base={"features__activation_offload_plan": None},
    ),
    Case(
        "chunk loss takes the place of the model's own",
        {"loss_chunk": "dynamic"},
        {"loss_chunk": "none"},
        base={"features__loss_cfg__loss_type": "raw"},
    ),
    Case(
        "a chunk of the loss holds",
        {"loss_chunk_size": 0},
        {"loss_chunk_size": 0, "loss_chunk": "none"},
    ),
    Case(
        "a dynamic chunk of the loss holds",
        {"loss_chunk": "dynamic", "loss_total_chunk_size": 1},
        {"loss_chunk": "dynamic", "loss_total_chunk_size": 2},
    ),
    Case(
        "micro-batches are cut into smaller",
        {"chunk_micro_batches": True, "chunk_mbs": 2},
        {"chunk_micro_batches": True, "chunk_mbs": 1},
    ),
    Case(
        "micro-batches are cut into smaller",
        {"chunk_micro_batches": True, "chunk_mbs": 0},
        {"chunk_micro_batches": False, "chunk_mbs": 0},
    ),
    Case(
        "cutting micro-batches needs",
        {"chunk_micro_batches": True, **OFF},
        {"chunk_micro_batches": True},
    ),
    Case(
        "recomputation of attention is skipped",
        {"skip_linear_attention_recompute": True},
        {"skip_linear_attention_recompute": True, **OFF},
    ),
    Case(
        "the model's loss cannot be taken in chunks",
        {"loss_chunk": "dynamic"},
        {"loss_chunk": "none"},
        base={"model__model_id": "wan2_2_container"},
    ),
]


def trainer_of(case: Case, folder: Path) -> MindspeedFsdp2:
    text = {**WEIGHTS["text_config"], **case.text}
    text = {name: value for name, value in text.items() if value is not None}
    root = make_checkout(folder, edited(**case.base), {**WEIGHTS, "text_config": text})
    return load(root, **case.load)


def broken(trainer: MindspeedFsdp2, point: dict[str, Any]) -> list[str]:
    """The reasons of all rules that the point breaks."""
    facts = {"model": trainer.dims, "cluster": {"world_size": trainer.world_size}}
    values = {**trainer.fixed, **point}
    return [rule.reason for rule in trainer.rules if not rule.expression.holds({**facts, **values})]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason[:40])
def test_a_rule_and_its_border(case: Case, tmp_path: Path) -> None:
    trainer = trainer_of(case, tmp_path)
    assert [r for r in broken(trainer, case.wrong) if r.startswith(case.reason)], case.wrong
    assert broken(trainer, case.right) == []


@pytest.mark.parametrize("model", ["qwen3_5", "qwen3_vl_moe", "wan2_2_container", "qwen3_tts"])
@pytest.mark.parametrize("device", ["npu", "cpu"])
def test_every_rule_has_a_case(model: str, device: str, tmp_path: Path) -> None:
    """But for those that choices are already held against: sizes of at least 1."""
    trainer = load(make_checkout(tmp_path, edited(model__model_id=model)), device=device)
    for rule in trainer.rules:
        tested = any(rule.reason.startswith(case.reason) for case in CASES)
        assert tested or rule.reason in UNTESTED, rule.reason


UNTESTED = (
    "a micro-batch holds at least one sample",
    "Ulysses splits the attention heads of the vision tower too",
)


def test_the_base_itself_is_legal(tmp_path: Path) -> None:
    assert broken(load(make_checkout(tmp_path)), {}) == []


@pytest.mark.parametrize(
    "base",
    [
        # As MindSpeed-MM's examples have it: experts over ranks, and no weights at hand yet.
        {**EXPERTS, "parallel__expert_parallel_size": 8},
        {"parallel__expert_fully_shard_parallel_size": 1},
        # Cut into parts of the whole size: of no use, and no harm.
        {"features__enable_chunk_mbs": True, "features__chunkmbs_plan__chunk_mbs": 4},
    ],
)
def test_present_configurations_are_legal_whatever_is_known(
    base: dict[str, Any], tmp_path: Path
) -> None:
    trainer = load(make_checkout(tmp_path, edited(**base), weights=None))
    assert broken(trainer, {}) == []


def test_few_key_and_value_heads_are_repeated(tmp_path: Path) -> None:
    trainer = load(make_checkout(tmp_path))
    assert trainer.dims["num_kv_heads"] == 4
    assert broken(trainer, {"sp_degree": 8}) == []


def test_no_heads_are_known_no_heads_are_counted(tmp_path: Path) -> None:
    trainer = load(make_checkout(tmp_path, weights=None))
    assert broken(trainer, {"sp_degree": 8}) == []


def test_rules_are_counted_in_a_space_that_varies_few_parameters(tmp_path: Path) -> None:
    """The rest comes from the user's YAML; of 12 points those remain that hold all rules."""
    trainer = load(make_checkout(tmp_path))
    facts = {"model": trainer.dims, "cluster": {"world_size": 8}}
    parameters = {
        "sp_degree": {"choices": [1, 2, 3, 8]},
        "micro_batch_size": {"choices": [1, 2, 4]},
    }
    definition = SpaceDefinition.parse({"parameters": parameters}, facts)
    space = LegalSpace.build(definition.with_rules(trainer.rules, trainer.fixed))
    found = {(point["sp_degree"], point["micro_batch_size"]) for point in space.points}
    assert found == {(1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (8, 1), (8, 2), (8, 4)}


def test_a_rule_whose_figure_is_missing_asks_for_it(tmp_path: Path) -> None:
    trainer = load(make_checkout(tmp_path))
    definition = SpaceDefinition.parse(
        {"parameters": {"sp_degree": {"choices": [1, 2]}}},
        {"model": {}, "cluster": {"world_size": 8}},
    )
    with pytest.raises(UserError, match=r"give model\.dims\.global_batch_size=NUMBER"):
        definition.with_rules(trainer.rules, trainer.fixed)


@pytest.mark.parametrize(
    ("values", "ulysses", "ring"),
    [
        ({"sp_degree": 1, "sp_algorithm": "usp", "ulysses_degree": 4}, 1, 1),
        ({"sp_degree": 8, "sp_algorithm": "ulysses"}, 8, 1),
        ({"sp_degree": 8, "sp_algorithm": "ring"}, 1, 8),
        ({"sp_degree": 8, "sp_algorithm": "usp", "ulysses_degree": 2}, 2, 4),
    ],
)
def test_group_sizes_and_their_expressions(values: dict[str, Any], ulysses: int, ring: int) -> None:
    scope = {"ulysses_degree": None, **values}
    assert group_sizes(scope) == (ulysses, ring)
    for text, size in ((ULYSSES, ulysses), (RING, ring)):
        assert Expression.parse(text, "here").evaluate(scope) == size
    words = degrees_of(ulysses, ring)
    assert (words["sp_degree"], group_sizes(words)) == (ulysses * ring, (ulysses, ring))


def test_models_that_are_not_known_can_do_nothing_special() -> None:
    assert support_of(None) == support_of("new_model")
    assert support_of("new_model").algorithms == ()
    assert support_of("qwen3_5").linear_attention
