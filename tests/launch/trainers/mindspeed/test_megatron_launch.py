"""What a trial of a Megatron backend runs: the program, its arguments and files, no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from megatron_checkout import SCRIPTS, make_checkout, trainer_for

from autotune.errors import UserError
from autotune.ports import MeasurementPlan, RankProgram
from launch.trainers.mindspeed.megatron import MindspeedMegatron

PLAN = MeasurementPlan(warmup_steps=2, measured_steps=5)
HETERO = {
    "hetero_parallel": True,
    "tensor_parallel_size": 2,
    "pipeline_parallel_size": 2,
    "micro_batch_size": 2,
    "pipeline_split": "even",
    "image_encoder_tensor_parallel_size": 2,
    "encoder_micro_batch_scale": 2,
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "mm")


def run(trainer: MindspeedMegatron, point: Mapping[str, Any], folder: Path) -> RankProgram:
    return trainer.trial_program(point, PLAN, folder)


def options(program: RankProgram) -> dict[str, str | bool]:
    """What argparse would read: the last of several wins."""
    words = list(program.argv[4:])
    found: dict[str, str | bool] = {}
    for at, word in enumerate(words):
        if word.startswith("--"):
            value = words[at + 1] if at + 1 < len(words) else "--"
            found[word] = True if value.startswith("--") else value
    return found


def document(program: RankProgram, name: str) -> Any:
    return yaml.safe_load(program.files[name])


def test_the_script_itself_is_never_started(checkout: Path, tmp_path: Path) -> None:
    program = run(trainer_for(checkout, "vlm"), {}, tmp_path / "trial")
    assert program.argv[2:4] == ("mindspeed_megatron", "pretrain_vlm.py")
    assert program.cwd == checkout
    assert not (checkout / "was_run").exists()
    assert not [word for word in program.argv if "find" in word or "tee" in word]


def test_ranks_get_the_scripts_environment_and_the_checkout(checkout: Path, tmp_path: Path) -> None:
    trainer = trainer_for(checkout, "vlm", "+trainer.env.OMP_NUM_THREADS=3")
    program = run(trainer, {}, tmp_path)
    assert program.env["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert (program.env["TASK_QUEUE_ENABLE"], program.env["OMP_NUM_THREADS"]) == ("2", "3")
    assert program.env["PYTHONPATH"].split(":")[0] == str(checkout)
    assert json.loads(program.env["AUTOTUNE_HOOK_PLAN"])["steps"] == 7
    assert not set(program.env) & {"RANK", "MASTER_ADDR", "MASTER_PORT"}


def test_nothing_is_loaded_saved_or_evaluated(checkout: Path, tmp_path: Path) -> None:
    program = run(trainer_for(checkout, "vlm"), {}, tmp_path / "trial")
    given = options(program)
    assert not set(given) & {"--load", "--save", "--save-interval", "--tensorboard-dir"}
    assert given["--train-iters"] == "7"
    assert (given["--eval-iters"], given["--log-interval"]) == ("0", "1")
    # 100 iterations of warm-up do not fit into the trial's 7, which the program would refuse.
    assert (given["--lr-warmup-iters"], given["--lr-decay-iters"]) == ("100", "5000")
    assert given["--mm-tool"] == str(tmp_path / "trial/tool.json")
    assert document(program, "tool.json")["profile"]["enable"] is False


def test_what_a_point_leaves_out_stays_as_it_is(checkout: Path, tmp_path: Path) -> None:
    program = run(trainer_for(checkout, "vlm"), {}, tmp_path)
    given = options(program)
    assert given["--pipeline-model-parallel-size"] == "2"
    assert given["--global-batch-size"] == "24"
    assert given["--mm-model"] == "./conf/model.json"
    assert set(program.files) == {"tool.json"}


def test_parallelism_of_all_modules_is_on_the_command_line(checkout: Path, tmp_path: Path) -> None:
    point = {
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "sp_degree": 4,
        "sp_algorithm": "usp",
        "ulysses_degree": 2,
        "micro_batch_size": 3,
    }
    given = options(run(trainer_for(checkout, "vlm"), point, tmp_path))
    assert given["--tensor-model-parallel-size"] == "2"
    assert given["--context-parallel-size"] == "4"
    assert given["--context-parallel-algo"] == "hybrid_cp_algo"
    assert given["--ulysses-degree-in-cp"] == "2"
    assert (given["--micro-batch-size"], given["--global-batch-size"]) == ("3", "24")


def test_a_pipeline_has_the_encoders_first(checkout: Path, tmp_path: Path) -> None:
    point = {"pipeline_parallel_size": 4, "pipeline_split": [0, 4, 4, 4]}
    program = run(trainer_for(checkout, "vlm"), point, tmp_path)
    model = document(program, "model.json")
    assert model["text_decoder"]["pipeline_num_layers"] == [0, 4, 4, 4]
    assert model["image_encoder"]["vision_encoder"]["pipeline_num_layers"] == [6, 0, 0, 0]


def test_virtual_stages_are_rounds_of_the_pipeline(checkout: Path, tmp_path: Path) -> None:
    point = {"virtual_pipeline_size": 2, "pipeline_split": [1, 3, 4, 4]}
    program = run(trainer_for(checkout, "vlm"), point, tmp_path)
    model = document(program, "model.json")
    assert model["text_decoder"]["pipeline_num_layers"] == [[1, 3], [4, 4]]
    assert model["image_encoder"]["vision_encoder"]["pipeline_num_layers"] == [[6, 0], [0, 0]]
    assert options(program)["--virtual-pipeline-model-parallel-size"] == "2"


def test_hetero_parallel_holds_the_global_batch(checkout: Path, tmp_path: Path) -> None:
    """The program divides what it is given by the decoder's ranks: 384 became 96 at four."""
    program = run(trainer_for(checkout, "vlm"), HETERO, tmp_path)
    given = options(program)
    assert given["--hetero-parallel"] is True
    assert given["--global-batch-size"] == str(24 * 4)
    shell = ("--tensor", "--pipeline")
    assert {given[f"{name}-model-parallel-size"] for name in shell} == {"1"}
    model = document(program, "model.json")
    assert [model["text_decoder"][key] for key in ("tp", "pp", "cp")] == [2, 2, 1]
    assert [model["image_encoder"][key] for key in ("tp", "pp", "cp")] == [2, 1, 1]
    assert given["--hetero-encoder-mbs-scale"] == "2"


def test_recomputation_of_a_vlm_is_of_its_decoder(checkout: Path, tmp_path: Path) -> None:
    point = {"recompute": "full", "recompute_method": "uniform", "recompute_layers": 2}
    program = run(trainer_for(checkout, "vlm"), point, tmp_path)
    decoder = document(program, "model.json")["text_decoder"]
    assert decoder["recompute_granularity"] == "full"
    assert (decoder["recompute_method"], decoder["recompute_num_layers"]) == ("uniform", 2)
    assert "--recompute-granularity" not in options(program)


def test_recomputation_of_a_dit_leaves_attention_out(checkout: Path, tmp_path: Path) -> None:
    point = {"recompute_layers": 4, "skip_attention_layers": 8, "activation_offload": True}
    program = run(trainer_for(checkout, "dit"), point, tmp_path)
    given = options(program)
    assert given["--recompute-num-layers"] == "4"
    assert given["--recompute-skip-core-attention"] is True
    assert given["--recompute-num-layers-skip-core-attention"] == "8"
    assert document(program, "model.json")["predictor"]["attention_async_offload"] is True


def test_no_recomputation_takes_its_options_away(checkout: Path, tmp_path: Path) -> None:
    given = options(run(trainer_for(checkout, "dit"), {"recompute": "none"}, tmp_path))
    assert not [name for name in given if "recompute" in name]


def test_a_pipeline_of_a_dit_sends_several_tensors(checkout: Path, tmp_path: Path) -> None:
    program = run(trainer_for(checkout, "dit"), {"pipeline_parallel_size": 2}, tmp_path)
    assert options(program)["--use-multiparameter-pipeline-model-parallel"] is True


@pytest.mark.parametrize(
    ("order", "sampler", "mode"),
    [
        ("bucketing", "BucketBatchSampler", "data_bucketing_img"),
        ("reordering", "BucketBatchSampler", "data_reordering_img"),
    ],
)
def test_buckets_are_a_sampler_and_its_mode(
    checkout: Path, tmp_path: Path, order: str, sampler: str, mode: str
) -> None:
    program = run(trainer_for(checkout, "vlm"), {"bucket_order": order}, tmp_path)
    loader = document(program, "data.json")["dataloader_param"]
    assert (loader["sampler_type"], loader["priority_mode"]) == (sampler, mode)


def test_groups_of_like_videos_exclude_each_other(checkout: Path, tmp_path: Path) -> None:
    program = run(trainer_for(checkout, "dit"), {"length_grouping": "frame"}, tmp_path)
    loader = document(program, "data.json")["dataloader_param"]
    groups = {name: loader[f"group_{name}"] for name in ("data", "frame", "resolution")}
    assert groups == {"data": False, "frame": True, "resolution": False}


def test_shards_are_in_their_own_file(checkout: Path, tmp_path: Path) -> None:
    point = {"fsdp_size": 4, "forward_prefetch": 1, "recompute_modules": None}
    program = run(trainer_for(checkout, "sharded"), point, tmp_path)
    shards = document(program, "fsdp2.yaml")
    assert shards["sharding_size"] == 4
    assert shards["num_to_forward_prefetch"] == 1
    assert shards["recompute_modules"] is None
    assert options(program)["--fsdp2-config-path"] == str(tmp_path / "fsdp2.yaml")


def test_sharding_does_not_take_one_connection(checkout: Path, tmp_path: Path) -> None:
    script = checkout / "sharded.sh"
    text = script.read_text(encoding="utf-8").replace("CONNECTIONS=2", "CONNECTIONS=1")
    script.write_text(text, encoding="utf-8")
    program = run(trainer_for(checkout, "sharded"), {}, tmp_path)
    assert program.env["CUDA_DEVICE_MAX_CONNECTIONS"] == "2"


def test_megatron_needs_one_connection(checkout: Path, tmp_path: Path) -> None:
    script = checkout / "vlm.sh"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("export CUDA_DEVICE_MAX_CONNECTIONS=1\n", ""), encoding="utf-8")
    program = run(trainer_for(checkout, "vlm"), {"sp_degree": 2}, tmp_path)
    assert program.env["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_a_yaml_holds_arguments_model_and_data(checkout: Path, tmp_path: Path) -> None:
    point = {"sp_degree": 2, "loss_chunk": "dynamic", "loss_total_chunk_size": 2048}
    program = run(trainer_for(checkout, "chat"), point, tmp_path)
    assert program.argv[4] == str(tmp_path / "config.yaml")
    config = document(program, "config.yaml")
    arguments = config["gpt_args"]
    assert arguments["layout"]["context_parallel_size"] == 2
    assert arguments["train_iters"] == 7
    assert (arguments["eval_iters"], arguments["clip_grad"]) == (0, 0.0)
    assert "save" not in arguments
    assert config["model"]["loss_cfg"] == {"compute_mode": "dynamic_chunk", "chunk_size": 2048}
    assert config["MM_TOOL_PATH"] == str(tmp_path / "tool.json")


@pytest.mark.parametrize("name", SCRIPTS)
def test_equal_runs_are_equal(checkout: Path, name: str) -> None:
    trainer = trainer_for(checkout, name)
    nothing = trainer.native({})
    assert nothing == trainer.native({"micro_batch_size": 1, "sp_degree": 1})
    assert nothing != trainer.native({"micro_batch_size": 2})
    assert trainer.native({"no_such": 1}) is None


def test_a_dit_that_encodes_ahead_is_measured_over_whole_rounds(checkout: Path) -> None:
    path = checkout / "conf/dit.json"
    model = json.loads(path.read_text(encoding="utf-8")) | {"encoder_offload_interval": 4}
    path.write_text(json.dumps(model), encoding="utf-8")
    plan = trainer_for(checkout, "dit").plan(warmup_steps=3, min_steps=8, max_steps=15)
    assert (plan.warmup_steps, plan.measured_steps, plan.window_steps) == (4, 12, 4)


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"fsdp_size": [4]}, "has no such parameter"),
        ({"audio_encoder_sp_degree": [2]}, "has no such parameter"),
        ({"sp_algorithm": ["spiral"]}, "it takes ulysses, ring, usp"),
        ({"micro_batch_size": [0]}, "a whole number of at least 1"),
        ({"micro_batch_size": [True]}, "a whole number"),
        ({"pipeline_split": [[6, 7]]}, "have 13 layers, the model 12"),
        ({"pipeline_split": [[0, 12]]}, "needs a layer that is trained"),
        ({"pipeline_split": [[[6], [6]]]}, "in one list"),
        ({"pipeline_split": ["evenly"]}, "write even"),
    ],
)
def test_choices_that_cannot_be_are_refused(
    checkout: Path, choices: dict[str, list[Any]], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        trainer_for(checkout, "vlm").check(choices)


def test_empty_stages_are_for_virtual_pipelines(checkout: Path) -> None:
    choices = {"virtual_pipeline_size": [1, 2], "pipeline_split": [[0, 4, 4, 4]]}
    trainer_for(checkout, "vlm").check(choices)


def test_a_script_without_a_launch_is_refused(checkout: Path) -> None:
    (checkout / "vlm.sh").write_text("echo nothing here\n", encoding="utf-8")
    with pytest.raises(UserError, match="torchrun"):
        trainer_for(checkout, "vlm")


def test_a_missing_file_is_named(checkout: Path) -> None:
    (checkout / "conf/model.json").unlink()
    with pytest.raises(UserError, match=r"--mm-model in vlm\.sh=.*model\.json"):
        trainer_for(checkout, "vlm")


def test_a_broken_file_is_named(checkout: Path) -> None:
    (checkout / "conf/model.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json is no JSON"):
        trainer_for(checkout, "vlm")


def test_another_backends_script_is_sent_there(checkout: Path) -> None:
    text = (checkout / "sharded.sh").read_text(encoding="utf-8")
    (checkout / "dit.sh").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="trainer=mindspeed_megatron_fsdp2"):
        trainer_for(checkout, "dit")


def test_another_program_is_refused(checkout: Path) -> None:
    text = (checkout / "dit.sh").read_text(encoding="utf-8").replace("pretrain_sora", "inference")
    (checkout / "dit.sh").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"none of the Megatron backends' training programs"):
        trainer_for(checkout, "dit")
