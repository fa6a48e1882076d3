"""A small checkout of the kind that MindSpeed-MM's native FSDP2 trainer runs from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from autotune.config.schema import Config
from autotune.config.typed import build
from launch.trainers.mindspeed.fsdp2 import MindspeedFsdp2
from launch.trainers.sources import Sources

COMMIT = "57069cd5" + "0" * 32
BASE = "examples/tiny/tiny_config.yaml"

# Eight ranks, no accumulation: a global batch of 8 * 2 = 16 samples.
YAML = """\
# One tiny model, for eight devices.
parallel:
  fully_shard_parallel_size: auto   # all of them
  ulysses_parallel_size: 1
  fsdp_plan:
    apply_modules:
      - model.visual.blocks.{*}
      - model.language_model.layers.{*}
    num_to_forward_prefetch: 1
    param_dtype: "bf16"
data:
  dataset_param: {basic_parameters: {template: "qwen"}}
  dataloader_param:
    num_workers: 2      # of each rank
    sampler_type: BaseRandomBatchSampler
model:
  model_id: qwen3_5
  model_name_or_path: weights/tiny
  attn_implementation: flash_attention_2
  anything: {goes: here}
features:
  recompute: true
  recompute_plan:
    apply_modules: &layers
      - model.language_model.layers.{*}
  enable_activation_offload: true
  activation_offload_plan:
    apply_modules: *layers
  enable_chunk_loss: true
  chunkloss_plan:
    chunk_size: 1024
  loss_cfg:
    loss_type: per_token_loss
training:
  micro_batch_size: 2
  lr: 1.0e-5
  seed: 42
  train_iters: 5000
  save: ./out          # checkpoints
  load: ./weights-dcp
  save_interval: 1000
  val_interval: 500
  log_interval: 10
  plugin:
    - mindspeed_mm/fsdp/models/qwen3_5
tools:
  profile: {enable: true, ranks: [0]}
"""

# A text model of 16 heads, 8 of them for keys and values, with linear attention and experts.
WEIGHTS: Mapping[str, Any] = {
    "text_config": {
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "num_experts": 12,
        "vocab_size": 512,
        "tie_word_embeddings": True,
    },
    "vision_config": {"hidden_size": 32, "depth": 2, "num_heads": 16},
}


def make_checkout(
    root: Path, text: str = YAML, weights: Mapping[str, Any] | None = WEIGHTS
) -> Path:
    """Writes it below `root`; weights: config.json, None for none."""
    program = root / "mindspeed_mm" / "fsdp" / "train" / "trainer.py"
    base, config = root / BASE, root / "weights" / "tiny" / "config.json"
    for path in (program, base, config, root / ".git" / "HEAD"):
        path.parent.mkdir(parents=True, exist_ok=True)
    program.touch()
    base.write_text(text, encoding="utf-8")
    (root / ".git" / "HEAD").write_text(COMMIT + "\n")
    if weights is not None:
        config.write_text(json.dumps(weights))
    return root


def config_of(root: Path, ranks: int = 8, device: str = "npu", **keys: Any) -> Config:
    """The configuration of a study. keys: of its `trainer`; `dims` and `base` of its model."""
    model = {"name": "tiny", "dims": keys.pop("dims", {})}
    model["base"] = keys.pop("base", {"config": BASE})
    trainer = {"name": "mindspeed_fsdp2", "root": str(root), "commit": "57069cd5", **keys}
    cluster = {"device": device, "devices_per_trial": ranks, "device_memory": "64GiB"}
    study = {"name": "s", "dir": "s"}
    data = {"study": study, "model": model, "space": {}, "trainer": trainer, "cluster": cluster}
    return build(Config, data)


def load(root: Path, ranks: int = 8, device: str = "npu", **keys: Any) -> MindspeedFsdp2:
    """The trainer of a checkout."""
    config = config_of(root, ranks, device, **keys)
    return MindspeedFsdp2.load(config, Sources(config.trainer.root))


def edited(text: str = YAML, **keys: Any) -> str:
    """The YAML with keys changed, `__` for the dot between their parts; None takes one away."""
    data = yaml.safe_load(text)
    for key, value in keys.items():
        *parents, last = key.split("__")
        node = data
        for part in parents:
            node = node.setdefault(part, {})
        node[last] = value
        if value is None:
            del node[last]
    return yaml.safe_dump(data, sort_keys=False)
