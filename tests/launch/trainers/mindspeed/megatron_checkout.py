"""A checkout with small launches of the kinds that MindSpeed-MM's Megatron backends have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.config.compose import compose_config
from launch.trainers.mindspeed.megatron import MindspeedMegatron
from launch.trainers.registry import make_trainer
from launch.trainers.sources import Sources

_HEAD = """#!/bin/bash
source /opt/cann/set_env.sh
export CUDA_DEVICE_MAX_CONNECTIONS={connections}
export TASK_QUEUE_ENABLE=2   # a comment
NPUS_PER_NODE=8
NNODES=1
CARDS=$(($NPUS_PER_NODE*$NNODES))
OUT="results"
LAYOUT="
    --nproc_per_node $NPUS_PER_NODE \\
    --nnodes $NNODES \\
    --node_rank 0 --master_addr localhost --master_port 6001
"
"""
_TAIL = """
find $OUT -type f -exec chmod 640 {} \\;
touch was_run
"""
VLM_SCRIPT = (
    _HEAD.format(connections=1)
    + """
TP=1
PP=2
MBS=1
GBS=$(($MBS*6*$CARDS/$TP/$PP))
ARGS="
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} \\
    --context-parallel-size 1 --context-parallel-algo ulysses_cp_algo \\
    --micro-batch-size ${MBS} --global-batch-size ${GBS} --seq-length 1024 \\
    --lr 1.0e-5 --lr-warmup-iters 100 --train-iters 5000 --bf16 \\
    --load weights/vlm --save $OUT --save-interval 1000 --eval-iters 50 --eval-interval 500 \\
    --use-distributed-optimizer --num-workers 4 --tensorboard-dir $OUT/board
"
torchrun $LAYOUT pretrain_vlm.py $ARGS --mm-data conf/data.json --mm-model ./conf/model.json \\
    --mm-tool conf/tools.json --distributed-backend nccl 2>&1 | tee run_$(date +%F).log
"""
    + _TAIL
)
DIT_SCRIPT = (
    _HEAD.format(connections=1)
    + """
torchrun $LAYOUT pretrain_sora.py --tensor-model-parallel-size 1 \\
    --pipeline-model-parallel-size 1 --context-parallel-size 1 --micro-batch-size 1 \\
    --global-batch-size 8 --train-iters 900 --attention-mask-type general \\
    --recompute-granularity full --recompute-method block --recompute-num-layers 12 \\
    --layerzero --layerzero-config conf/zero.yaml --use-distributed-optimizer \\
    --mm-data conf/video.json --mm-model conf/dit.json --mm-tool conf/tools.json
"""
    + _TAIL
)
SHARDED_DIT_SCRIPT = (
    _HEAD.format(connections=2)
    + """
torchrun $LAYOUT pretrain_sora.py --micro-batch-size 1 --global-batch-size 8 \\
    --attention-mask-type general --use-torch-fsdp2 --fsdp2-config-path conf/shards.yaml \\
    --ckpt-format torch_dcp --mm-data conf/video.json --mm-model conf/dit.json \\
    --mm-tool conf/tools.json --train-iters 900
"""
    + _TAIL
)
YAML_SCRIPT = (
    _HEAD.format(connections=2)
    + """
torchrun $LAYOUT pretrain_transformers.py conf/chat.yaml --distributed-backend nccl
"""
    + _TAIL
)
MODEL: Mapping[str, Any] = {
    "model_id": "qwen2_5vl",
    "image_encoder": {
        "vision_encoder": {
            "num_layers": 6,
            "num_attention_heads": 8,
            "ffn_hidden_size": 64,
            "freeze": True,
            "pipeline_num_layers": [6, 0],
        },
        "vision_projector": {"freeze": True},
        "tp": 1,
        "pp": 1,
        "cp": 1,
    },
    "text_decoder": {
        "num_layers": 12,
        "hidden_size": 128,
        "ffn_hidden_size": 256,
        "num_attention_heads": 12,
        "num_query_groups": 4,
        "vocab_size": 512,
        "pipeline_num_layers": [5, 7],
        "tp": 1,
        "pp": 1,
        "cp": 1,
    },
}
DATA: Mapping[str, Any] = {
    "dataloader_param": {
        "sampler_type": "BaseRandomBatchSampler",
        "collate_param": {"model_name": "qwen2vl"},
        "drop_last": True,
    }
}
DIT: Mapping[str, Any] = {
    "predictor": {
        "model_id": "wandit",
        "num_layers": 12,
        "num_heads": 8,
        "hidden_size": 256,
        "patch_size": [1, 2, 2],
        "pipeline_num_layers": [6, 6],
        "attention_async_offload": False,
    }
}
VIDEO: Mapping[str, Any] = {
    "dataset_param": {
        "preprocess_parameters": {"num_frames": 17, "max_height": 64, "max_width": 96}
    },
    "dataloader_param": {"sampler_type": "LengthGroupedSampler", "group_data": True},
}
TOOLS: Mapping[str, Any] = {
    "profile": {"enable": True},
    "memory_profile": {"enable": False, "mem_info": False},
}
SHARDS = "sharding_size: auto\nrecompute_modules:\n  - predictor.blocks.{*}  # all\n"
CHAT = """
MM_TOOL_PATH: conf/tools.json
gpt_args:
  ## parallel
  layout:
    context_parallel_size: 1
    context_parallel_algo: ulysses_cp_algo
  micro_batch_size: 1
  global_batch_size: 16
  use_torch_fsdp2: true
  fsdp2_config_path: conf/shards.yaml
  train_iters: 400
  clip_grad: 0.0
  seq_length: 1024
  save: results
  load: weights/chat
data:
  dataloader_param: {sampler_type: BaseRandomBatchSampler, collate_param: {model_name: qwen3vl}}
model:
  model_id: qwen3_vl_moe
  text_decoder: {num_layers: 4, num_attention_heads: 8, activation_offload: false}
  loss_cfg: {compute_mode: default, chunk_size: 1024}
"""
SCRIPTS: Mapping[str, tuple[str, str]] = {
    "vlm": ("mindspeed_megatron", VLM_SCRIPT),
    "dit": ("mindspeed_megatron", DIT_SCRIPT),
    "sharded": ("mindspeed_megatron_fsdp2", SHARDED_DIT_SCRIPT),
    "chat": ("mindspeed_megatron_fsdp2", YAML_SCRIPT),
}


def make_checkout(root: Path) -> Path:
    """The folder with all launches, `vlm.sh` and so on."""
    (root / "conf").mkdir(parents=True)
    for program in ("pretrain_vlm.py", "pretrain_sora.py", "pretrain_transformers.py"):
        (root / program).write_text("raise SystemExit('not to be run')\n", encoding="utf-8")
    documents = {"model": MODEL, "data": DATA, "dit": DIT, "video": VIDEO, "tools": TOOLS}
    for name, content in documents.items():
        (root / "conf" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (root / "conf/shards.yaml").write_text(SHARDS, encoding="utf-8")
    (root / "conf/zero.yaml").write_text("zero3_size: 4\n", encoding="utf-8")
    (root / "conf/chat.yaml").write_text(CHAT, encoding="utf-8")
    for name, (_, script) in SCRIPTS.items():
        (root / f"{name}.sh").write_text(script, encoding="utf-8")
    return root


def trainer_for(root: Path, name: str, *overrides: str) -> MindspeedMegatron:
    """The adapter for one of the launches."""
    folder = root / "search/model"
    folder.mkdir(parents=True, exist_ok=True)
    text = _MODEL_FILE.format(name=name, trainer=SCRIPTS[name][0], root=json.dumps(str(root)))
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    config = compose_config((f"model={name}", *overrides), folder.parent).config
    trainer = make_trainer(config, Sources(config.trainer.root))
    assert isinstance(trainer, MindspeedMegatron)
    return trainer


_MODEL_FILE = """# @package _global_
defaults: [override /trainer: {trainer}, override /cluster: npu]
model: {{name: {name}, base: {{script: {name}.sh}}}}
trainer: {{root: {root}, commit: any}}
space: {{parameters: {{micro_batch_size: {{choices: [1]}}}}}}
"""
