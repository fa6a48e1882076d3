"""The native FSDP2 trainer: the user's YAML, with nothing changed but what a point changes."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.errors import UserError
from autotune.ports import ExportPaths, MeasurementPlan
from autotune.profile_plan import ProfilePlan
from launch.trainers.mindspeed.fsdp2 import MindspeedFsdp2
from launch.trainers.sources import Sources
from tests.launch.trainers.mindspeed.fsdp2_checkout import (
    BASE,
    COMMIT,
    WEIGHTS,
    YAML,
    config_of,
    edited,
    load,
    make_checkout,
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "Mind Speed 50% a=b,c#1 调优")


@pytest.fixture
def trainer(checkout: Path) -> MindspeedFsdp2:
    return load(checkout)


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(node, dict):
        return {prefix.rstrip("."): node}
    return {k: v for key in node for k, v in flat(node[key], f"{prefix}{key}.").items()}


def changes(before: str, after: str) -> dict[str, Any]:
    """Keys that differ, as PyYAML reads the two texts; absent ones are "absent"."""
    old, new = flat(yaml.safe_load(before)), flat(yaml.safe_load(after))
    keys = {**old, **new}
    return {
        key: new.get(key, "absent")
        for key in keys
        if old.get(key, "absent") != new.get(key, "absent")
    }


def text_of(trainer: MindspeedFsdp2, point: dict[str, Any]) -> str:
    (text,) = trainer.files(point).values()
    return text


def test_what_the_yaml_says_is_read_back(trainer: MindspeedFsdp2) -> None:
    fixed = trainer.fixed
    expected = {
        "micro_batch_size": 2,
        "fsdp_size": "auto",
        "sp_degree": 1,
        "sp_algorithm": "ulysses",
        "recompute": True,
        "recompute_modules": ["model.language_model.layers.{*}"],
        "activation_offload": True,
        "offload_modules": ["model.language_model.layers.{*}"],
        "loss_chunk": "static",
        "loss_chunk_size": 1024,
        "forward_prefetch": 1,
        "dataloader_workers": 2,
        # What is not in the file is what the trainer takes then.
        "backward_prefetch": 0,
        "reshard_after_forward": True,
        "loss_total_chunk_size": 4096,
        "expert_parallel_size": 1,
        "expert_dispatcher": "alltoall",
        "optimizer": "adamw",
        "chunk_micro_batches": False,
    }
    assert {name: fixed[name] for name in expected} == expected
    assert trainer.global_batch_size == 16


def test_a_point_that_says_what_the_yaml_says_changes_nothing(trainer: MindspeedFsdp2) -> None:
    same = {"micro_batch_size": 2, "sp_degree": 1, "loss_chunk": "static", "recompute": True}
    assert changes(YAML, text_of(trainer, {})) == {}
    assert changes(YAML, text_of(trainer, same)) == {}
    assert trainer.native(same) == trainer.native({})


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (
            {"micro_batch_size": 1},
            {"training.micro_batch_size": 1, "training.gradient_accumulation_steps": 2},
        ),
        (
            {"sp_degree": 4, "sp_algorithm": "ulysses"},
            {
                "parallel.ulysses_parallel_size": 4,
                "training.gradient_accumulation_steps": 4,
            },
        ),
        (
            {"sp_degree": 2, "sp_algorithm": "ring", "micro_batch_size": 4},
            {"parallel.ring_attention_size": 2, "training.micro_batch_size": 4},
        ),
        (
            {"sp_degree": 8, "sp_algorithm": "usp", "ulysses_degree": 2, "micro_batch_size": 16},
            {
                "parallel.ulysses_parallel_size": 2,
                "parallel.ring_attention_size": 4,
                "training.micro_batch_size": 16,
            },
        ),
        ({"sp_algorithm": "ring"}, {}),
        ({"fsdp_size": 4}, {"parallel.fully_shard_parallel_size": 4}),
        ({"forward_prefetch": 0}, {"parallel.fsdp_plan.num_to_forward_prefetch": 0}),
        ({"pregather": True}, {"parallel.fsdp_plan.pregather": True}),
        ({"recompute": False}, {"features.recompute": False}),
        ({"activation_offload": False}, {"features.enable_activation_offload": False}),
        ({"loss_chunk": "none"}, {"features.enable_chunk_loss": False}),
        (
            {"loss_chunk": "dynamic", "loss_total_chunk_size": 2048},
            {
                "features.enable_chunk_loss": False,
                "features.enable_dynamic_chunk_loss": True,
                "features.chunkloss_plan.total_chunk_size": 2048,
            },
        ),
        ({"loss_chunk_size": 256}, {"features.chunkloss_plan.chunk_size": 256}),
        # The two lists of modules are one in the file; the other stays as it is.
        ({"offload_modules": ["x"]}, {"features.activation_offload_plan.apply_modules": ["x"]}),
        ({"recompute_modules": ["x"]}, {"features.recompute_plan.apply_modules": ["x"]}),
        (
            {"expert_parallel_size": 4, "expert_dispatcher": "allgather"},
            {"parallel.expert_parallel_size": 4, "parallel.ep_plan.dispatcher": "allgather"},
        ),
        ({"optimizer": "adamw_swap"}, {"training.optimizer": "adamw_swap"}),
        ({"dataloader_workers": 0}, {"data.dataloader_param.num_workers": 0}),
        ({"dataloader_preload": True}, {"data.dataloader_param.enable_preload": True}),
        (
            {"chunk_micro_batches": True, "chunk_mbs": 1},
            {"features.enable_chunk_mbs": True},
        ),
        ({"skip_linear_attention_recompute": True}, {"model.skip_gdn_recompute": True}),
        # Without recomputation there is nothing to skip.
        (
            {"skip_linear_attention_recompute": True, "recompute": False},
            {"features.recompute": False},
        ),
    ],
)
def test_only_keys_that_the_point_changes_change(
    trainer: MindspeedFsdp2, point: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changes(YAML, text_of(trainer, point)) == expected
    assert flat(trainer.config(point)) == flat(yaml.safe_load(text_of(trainer, point)))


def test_comments_stay(trainer: MindspeedFsdp2) -> None:
    text = text_of(trainer, {"micro_batch_size": 1, "fsdp_size": 4})
    for comment in ("# One tiny", "# all of them", "# of each rank", "# checkpoints"):
        assert comment in text
    assert "num_to_forward_prefetch: 1\n" in text
    assert '"bf16"' in text


@pytest.mark.parametrize(
    ("ranks", "point", "steps"),
    [
        (8, {"micro_batch_size": 1}, 2),
        (8, {"micro_batch_size": 2, "sp_degree": 2}, 2),
        (8, {"micro_batch_size": 1, "sp_degree": 8}, 16),
        (8, {"micro_batch_size": 16, "sp_degree": 8}, 1),
    ],
)
def test_accumulation_holds_the_global_batch(
    checkout: Path, ranks: int, point: dict[str, Any], steps: int
) -> None:
    """GBS = micro-batch * accumulation * ranks / SP degree (fsdp/params/training_args.py)."""
    training = load(checkout, ranks).config(point)["training"]
    assert training.get("gradient_accumulation_steps", 1) == steps
    size, degree = training["micro_batch_size"], point.get("sp_degree", 1)
    assert size * steps * ranks // degree == 16


def test_the_global_batch_is_that_of_the_yaml_unless_it_is_given(checkout: Path) -> None:
    assert load(checkout, ranks=4).global_batch_size == 8
    given = load(checkout, dims={"global_batch_size": 64})
    assert given.global_batch_size == given.dims["global_batch_size"] == 64
    assert given.config({})["training"]["gradient_accumulation_steps"] == 4
    (checkout / BASE).write_text(
        edited(parallel__ulysses_parallel_size=4, training__gradient_accumulation_steps=3)
    )
    assert load(checkout).global_batch_size == 2 * 3 * 8 // 4


def test_a_trial_loads_saves_and_evaluates_nothing(trainer: MindspeedFsdp2) -> None:
    """And makes as many steps as planned, each of them logged; the profile is ours."""
    plan = MeasurementPlan(2, 8, profile=ProfilePlan(steps=1, warmup_steps=1, ranks=(0,)))
    program = trainer.trial_program({"micro_batch_size": 1}, plan, Path("/trial"))
    (text,) = program.files.values()
    assert changes(text_of(trainer, {"micro_batch_size": 1}), text) == {
        "training.train_iters": 12,
        "training.val_interval": 0,
        "training.log_interval": 1,
        "training.load": "absent",
        "training.save": "absent",
        "training.load_rank0_and_broadcast": False,
        "tools.profile.enable": False,
        "tools.memory_profile.enable": False,
    }
    assert "training.load" in flat(trainer.config({}))


@pytest.mark.parametrize(
    "keys",
    [
        {"training__train_epochs": 3},
        {"training__load": ""},
        {"training__load_rank0_and_broadcast": True},
        {"training__lora": {"enable": True, "pretrained_lora_path": "x"}},
        {"tools": None},
        {"tools__memory_profile": {"enable": True, "mem_info": True}},
    ],
)
def test_what_would_outdo_a_trials_settings_goes(checkout: Path, keys: dict[str, Any]) -> None:
    (checkout / BASE).write_text(edited(**keys))
    plan = MeasurementPlan(0, 3)
    (text,) = load(checkout).trial_program({}, plan, Path("/trial")).files.values()
    found = yaml.safe_load(text)
    training = found["training"]
    assert not {"load", "save", "train_epochs"} & set(training)
    assert "pretrained_lora_path" not in training.get("lora", {})
    assert not training.get("load_rank0_and_broadcast")
    assert not found.get("tools", {}).get("profile", {}).get("enable")
    assert not found.get("tools", {}).get("memory_profile", {}).get("enable")
    assert training["train_iters"] == 3


def test_the_real_trainer_runs_behind_the_hook(trainer: MindspeedFsdp2, checkout: Path) -> None:
    plan = MeasurementPlan(2, 8)
    program = trainer.trial_program({}, plan, Path("/trial"))
    python, hooked, hook, script, config = program.argv
    assert python == sys.executable
    assert Path(hooked).name == "run_hooked.py"
    assert Path(hooked).is_file()
    assert (hook, script) == ("mindspeed_fsdp2", "mindspeed_mm/fsdp/train/trainer.py")
    assert config == "/trial/config.yaml"
    assert list(program.files) == ["config.yaml"]
    assert program.cwd == checkout
    assert program.env["NON_MEGATRON"] == "true"
    assert program.env["PYTHONPATH"].split(":")[0] == str(checkout)
    assert json.loads(program.env["AUTOTUNE_HOOK_PLAN"]) == {
        "steps": 10,
        "profile": None,
        "agree": True,
    }
    assert trainer.heeds_finish


def test_the_users_environment_wins(checkout: Path) -> None:
    env = {"NON_MEGATRON": "yes", "TASK_QUEUE_ENABLE": 2, "PYTHONPATH": "/mine"}
    trainer = load(checkout, env=env, python="/opt/py")
    program = trainer.trial_program({}, MeasurementPlan(0, 2), Path("/trial"))
    assert program.argv[0] == "/opt/py"
    assert (program.env["NON_MEGATRON"], program.env["TASK_QUEUE_ENABLE"]) == ("yes", "2")
    assert program.env["PYTHONPATH"] == f"{checkout}:/mine"
    assert trainer.environment({}) == {**program_env(env)}


def program_env(env: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in env.items()}


def test_over_hosts_no_rank_is_asked_to_finish(checkout: Path) -> None:
    config = config_of(checkout, ranks=16)
    cluster = replace(config.cluster, nodes_per_trial=2)
    trainer = MindspeedFsdp2.load(replace(config, cluster=cluster), Sources(str(checkout)))
    assert not trainer.heeds_finish
    program = trainer.trial_program({}, MeasurementPlan(0, 2), Path("/trial"))
    assert json.loads(program.env["AUTOTUNE_HOOK_PLAN"])["agree"] is False


def test_what_a_person_types_to_train(trainer: MindspeedFsdp2, checkout: Path) -> None:
    exported = ExportPaths("/study/best.yaml", "/study/best/0003")
    assert trainer.training_command({}, exported, 8) == (
        *("env", "-C", str(checkout), "python", "-m", "torch.distributed.run"),
        *("--nproc-per-node", "8", "mindspeed_mm/fsdp/train/trainer.py"),
        "/study/best/0003/tiny_config.yaml",
    )
    assert list(trainer.files({})) == ["tiny_config.yaml"]


def test_figures_come_from_the_weights_and_outdo_the_models_yaml(checkout: Path) -> None:
    dims = load(checkout, dims={"num_heads": 99, "seq_length": 7}).dims
    expected = {
        "hidden_size": 64,
        "num_layers": 4,
        "num_heads": 16,
        "num_kv_heads": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "num_experts": 12,
        "vocab_size": 512,
        "encoder_hidden_size": 32,
        "encoder_num_layers": 2,
        "encoder_num_heads": 16,
        "seq_length": 7,
        "global_batch_size": 16,
    }
    assert {name: dims[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"num_attention_heads": 8, "num_hidden_layers": 2}, {"num_heads": 8, "num_layers": 2}),
        ({"thinker_config": {"text_config": {"num_experts": 6}}}, {"num_experts": 6}),
        ({"thinker_config": None, "num_attention_heads": 8}, {"num_heads": 8}),
        ({"text_config": None, "vision_config": None, "vocab_size": 5}, {"vocab_size": 5}),
        ({"text_config": {"n_routed_experts": 384}}, {"num_experts": 384}),
        ({"num_local_experts": 32, "num_attention_heads": None}, {"num_experts": 32}),
        ({"num_hidden_layers": True, "head_dim": 1.5}, {}),
    ],
)
def test_config_json_of_other_models(
    tmp_path: Path, weights: dict[str, Any], expected: dict[str, int]
) -> None:
    dims = dict(load(make_checkout(tmp_path, weights=weights)).dims)
    del dims["global_batch_size"]
    assert dims == expected


def test_without_weights_there_are_no_figures(tmp_path: Path) -> None:
    root = make_checkout(tmp_path, weights=None)
    assert load(root).dims == {"global_batch_size": 16}
    (root / BASE).write_text(edited(model__model_name_or_path="Qwen/Qwen3.5-4B"))
    assert load(root).dims == {"global_batch_size": 16}


@pytest.mark.parametrize(("text", "message"), [("{", "is no JSON"), ("[1]", "holds no mapping")])
def test_a_config_json_that_is_none(checkout: Path, text: str, message: str) -> None:
    (checkout / "weights" / "tiny" / "config.json").write_text(text)
    with pytest.raises(UserError, match=message):
        load(checkout)


@pytest.mark.parametrize(
    ("keys", "named", "meant"),
    [
        ({"parallel__ulyses_parallel_size": 4}, "parallel.ulyses", "'ulysses_parallel_size'"),
        ({"parallel__pregather": True}, "parallel.pregather", "parallel.fsdp_plan.pregather?"),
        ({"features__recompute_plan__moduls": []}, "features.recompute_plan.moduls", "apply_modu"),
        ({"training__global_batch_size": 8}, "training.global_batch_size", "micro_batch_size"),
        ({"tools__profil": {"enable": True}}, "tools.profil:", "'profile'"),
        ({"tools__profile__static_param__levl": 1}, "static_param.levl", "'level'"),
        ({"paralel": {"fsdp_plan": {}}}, "paralel:", "'parallel'"),
        ({"feature__recompute": True}, "feature:", "'features'"),
    ],
)
def test_a_key_that_would_have_no_effect_is_named(
    checkout: Path, keys: dict[str, Any], named: str, meant: str
) -> None:
    (checkout / BASE).write_text(edited(**keys))
    with pytest.raises(UserError) as error:
        load(checkout)
    assert "keys that MindSpeed-MM ignores" in str(error.value)
    assert named in str(error.value)
    assert meant in str(error.value)


def test_models_and_data_may_hold_any_key(checkout: Path) -> None:
    (checkout / BASE).write_text(edited(model__new=1, data__new={"x": 1}, features__loss_cfg={}))
    load(checkout)


@pytest.mark.parametrize(
    "keys",
    [
        {"training__micro_batch_size": "4"},
        {"parallel__ulysses_parallel_size": "2"},
        {"parallel__ring_attention_size": True},
        {"features__recompute": "yes please"},
        {"training__gradient_accumulation_steps": 1.5},
        {"features__recompute_plan__apply_modules": "model.layers.{*}"},
    ],
)
def test_a_value_of_another_type(checkout: Path, keys: dict[str, Any]) -> None:
    (checkout / BASE).write_text(edited(**keys))
    with pytest.raises(UserError, match=r"another type .*" + next(iter(keys)).replace("__", ".")):
        load(checkout)


@pytest.mark.parametrize(
    ("keys", "ranks", "message"),
    [
        ({"training__micro_batch_size": 0}, 8, "must be at least 1, got 0, 1, 1"),
        ({"parallel__ulysses_parallel_size": 4}, 6, "SP degree of 4, which does not divide the 6"),
    ],
)
def test_a_base_that_has_no_global_batch(
    checkout: Path, keys: dict[str, Any], ranks: int, message: str
) -> None:
    (checkout / BASE).write_text(edited(**keys))
    with pytest.raises(UserError, match=message):
        load(checkout, ranks)


def refusals(checkout: Path) -> Iterator[tuple[dict[str, Any], str]]:
    nowhere = str(checkout / "nowhere")
    yield {"root": None}, "trainer.root is not given"
    yield {"root": nowhere}, f"trainer.root={nowhere} is no folder"
    yield {"root": str(checkout / "examples")}, "holds no mindspeed_mm/fsdp/train/trainer.py"
    yield {"commit": "028de58c"}, f"is at commit {COMMIT[:12]}, trainer.commit=028de58c (the rules"
    yield {"base": {}}, "model.base.config is not given"
    yield {"base": {"config": "examples/tiny/tiny_confg.yaml"}}, "did you mean 'tiny_config.yaml'"


def test_what_is_no_checkout_of_the_right_version(checkout: Path) -> None:
    for keys, message in refusals(checkout):
        root = keys.pop("root", str(checkout))
        config = config_of(checkout, **keys)
        config = replace(config, trainer=replace(config.trainer, root=root))
        with pytest.raises(UserError) as error:
            MindspeedFsdp2.load(config, Sources(root))
        assert message in str(error.value)


def test_another_version_may_be_accepted(checkout: Path) -> None:
    load(checkout, commit=COMMIT[:12])
    (checkout / ".git" / "HEAD").write_text("f" * 40)
    for commit in ("any", None, "fffffff"):
        load(checkout, commit=commit)
    (checkout / ".git" / "HEAD").unlink()
    load(checkout, commit="any")
    with pytest.raises(UserError, match=r"give trainer\.commit=any"):
        load(checkout)


def test_a_study_needs_no_checkout_any_more(checkout: Path) -> None:
    config = config_of(checkout)
    sources = Sources(str(checkout))
    first = MindspeedFsdp2.load(config, sources)
    assert set(sources.used) == {BASE, "commit", "weights/tiny/config.json"}
    for path in sorted(checkout.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    checkout.rmdir()
    again = MindspeedFsdp2.load(config, Sources(str(checkout), sources.used))
    assert again.dims == first.dims
    assert again.files({"sp_degree": 2}) == first.files({"sp_degree": 2})


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"sp_degre": [1, 2]}, r"space\.parameters\.sp_degre: .* did you mean 'sp_degree'"),
        ({"sp_degree": [1, "2"]}, r"choices: '2' cannot be; it takes a whole number of at least 1"),
        ({"sp_degree": [1, True]}, "'true' cannot be"),
        ({"sp_degree": [0, 1]}, "'0' cannot be"),
        ({"micro_batch_size": [0]}, "'0' cannot be"),
        ({"expert_parallel_size": [-1]}, "'-1' cannot be"),
        ({"fsdp_size": ["Auto"]}, "it takes a whole number of at least 1 or auto"),
        ({"sp_algorithm": ["ulyses"]}, "it takes ulysses, ring, usp"),
        ({"expert_dispatcher": ["a2a"]}, "it takes alltoall, allgather, mc2"),
        ({"recompute": [0, 1]}, "it takes true or false"),
        ({"loss_chunk": [None]}, "it takes none, static, dynamic"),
        ({"recompute_modules": ["model.layers"]}, "it takes a list of names"),
    ],
)
def test_choices_that_cannot_be(
    trainer: MindspeedFsdp2, choices: dict[str, Any], message: str
) -> None:
    trainer.check({"sp_degree": [1, 2], "fsdp_size": ["auto", 4], "recompute": [True]})
    with pytest.raises(UserError, match=message):
        trainer.check(choices)


@pytest.mark.parametrize(
    "values", [{"nope": 1}, {"sp_degree": "x"}, {"micro_batch_size": 0}, {"loss_chunk": None}]
)
def test_values_that_the_trainer_does_not_take_are_no_run(
    trainer: MindspeedFsdp2, values: dict[str, Any]
) -> None:
    assert trainer.native(values) is None


def test_the_base_stays_as_it_was(trainer: MindspeedFsdp2) -> None:
    before = copy.deepcopy(trainer.fixed)
    trainer.config({"recompute_modules": ["x"]})["features"].clear()
    trainer.trial_program({}, MeasurementPlan(0, 2), Path("/trial"))
    assert trainer.fixed == before
    assert trainer.config({}) == yaml.safe_load(YAML)
    assert WEIGHTS["text_config"]["num_attention_heads"] == 16
