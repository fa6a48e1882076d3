"""The exported script, run by the real bash with a torchrun that writes down what it gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from megatron_checkout import SCRIPTS, make_checkout, trainer_for

from autotune.ports import ExportPaths
from launch.trainers.mindspeed.megatron import MindspeedMegatron
from launch.trainers.shell import read_script, the_launch

POINTS: dict[str, dict[str, Any]] = {
    "vlm": {
        "tensor_parallel_size": 2,
        "micro_batch_size": 3,
        "bucket_order": "reordering",
        "recompute": "full",
        "recompute_method": "block",
        "recompute_layers": 2,
        "pipeline_split": [4, 8],
    },
    "dit": {"sp_degree": 2, "sp_algorithm": "ring", "layerzero": False, "recompute": "none"},
    "sharded": {"fsdp_size": 4, "recompute_modules": ["predictor.blocks.{0-5}"]},
    "chat": {"sp_degree": 4, "sp_algorithm": "ulysses", "fsdp_size": 2, "loss_chunk": "static"},
}
_TORCHRUN = """import json, os, sys
with open({out!r}, "w") as file:
    json.dump({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}, file)
"""


def export(trainer: MindspeedMegatron, point: dict[str, Any], folder: Path) -> Path:
    """Writes the files as the program does; the script."""
    folder.mkdir()
    for name, text in trainer.files(point).items():
        (folder / name).write_text(text, encoding="utf-8")
    paths = ExportPaths(str(folder / "best.yaml"), str(folder))
    shell, script = trainer.training_command(point, paths, 8)
    assert shell == "bash"
    return Path(script)


def run_script(script: Path, tmp_path: Path, **environment: str) -> dict[str, Any]:
    """What torchrun got."""
    shims = tmp_path / "bin"
    shims.mkdir()
    out = tmp_path / "seen.json"
    program = tmp_path / "torchrun.py"
    program.write_text(_TORCHRUN.format(out=str(out)), encoding="utf-8")
    torchrun = shims / "torchrun"
    # A first line cannot name a path with blanks in it.
    torchrun.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n', encoding="utf-8")
    torchrun.chmod(0o755)
    path = os.pathsep.join([str(shims), "/usr/bin", "/bin"])
    subprocess.run(
        ["bash", str(script)],
        cwd=tmp_path,
        env={"PATH": path, **environment},
        check=True,
        capture_output=True,
        timeout=60,
    )
    seen: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return seen


def given(words: list[str], program: str) -> dict[str, Any]:
    """The options after the program, by name; values of one as argparse has them."""
    found: dict[str, Any] = {}
    name = ""
    for word in words[words.index(program) + 1 :]:
        if word.startswith("--"):
            name = word
            found[name] = True
        elif name:
            found[name] = word if found[name] is True else [found[name], word]
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_starts_what_was_measured(tmp_path: Path, name: str) -> None:
    root = make_checkout(tmp_path / "mm")
    trainer = trainer_for(root, name)
    script = export(trainer, POINTS[name], tmp_path / "a b")
    seen = run_script(script, tmp_path)
    config = trainer.config(POINTS[name])
    paths = ("--mm-model", "--mm-data", "--mm-tool", "--fsdp2-config-path")
    got = given(seen["argv"], config["program"])
    wanted = {
        name: value if value is True else str(value)
        for name, value in config["arguments"].items()
        if name not in paths
    }
    if name == "chat":
        wanted = {name: value for name, value in wanted.items() if name not in paths}
        assert wanted["--clip-grad"] == "0.0"
    assert {name: value for name, value in got.items() if name not in paths} == wanted
    assert seen["cwd"] == str(root)
    environment = trainer.environment(POINTS[name])
    assert {key: seen["env"][key] for key in environment} == dict(environment)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_files_that_it_names_hold_the_point(tmp_path: Path, name: str) -> None:
    root = make_checkout(tmp_path / "mm")
    trainer = trainer_for(root, name)
    script = export(trainer, POINTS[name], tmp_path / "export")
    seen = run_script(script, tmp_path)
    config = trainer.config(POINTS[name])
    got = given(seen["argv"], config["program"])
    roles = {"model": "--mm-model", "data": "--mm-data", "fsdp2": "--fsdp2-config-path"}
    for role, option in roles.items():
        if role in config and option in got:
            file = root / str(got[option])
            assert yaml.safe_load(file.read_text(encoding="utf-8")) == config[role]
    if name == "chat":
        file = yaml.safe_load(Path(str(got["--mm-model"])).read_text(encoding="utf-8"))
        assert file["model"] == config["config"]["model"]
        assert got["--mm-data"] == got["--mm-model"]


def test_where_it_runs_is_told_from_outside(tmp_path: Path) -> None:
    trainer = trainer_for(make_checkout(tmp_path / "mm"), "vlm")
    script = export(trainer, {}, tmp_path / "export")
    seen = run_script(script, tmp_path, NNODES="2", NODE_RANK="1", MASTER_ADDR="10.0.0.7")
    layout = " ".join(seen["argv"][: seen["argv"].index("pretrain_vlm.py")])
    assert "--nnodes 2" in layout
    assert "--node_rank 1" in layout
    assert "--master_addr 10.0.0.7" in layout
    assert "--nproc_per_node 8" in layout


def test_it_does_nothing_but_train(tmp_path: Path) -> None:
    root = make_checkout(tmp_path / "mm")
    script = export(trainer_for(root, "vlm"), {}, tmp_path / "export")
    text = script.read_text(encoding="utf-8")
    assert not [word for word in ("find", "chmod", "tee", "touch") if word in text]


@pytest.mark.parametrize("name", ["vlm", "dit", "sharded"])
def test_it_is_a_base_itself(tmp_path: Path, name: str) -> None:
    """Read back, it gives the arguments with which it was written."""
    root = make_checkout(tmp_path / "mm")
    trainer = trainer_for(root, name)
    script = export(trainer, POINTS[name], tmp_path / "export")
    launch = the_launch(read_script(script.read_text(encoding="utf-8"), str(script)))
    assert launch.folder == str(root)
    got = given(["x", *launch.arguments], "x")
    paths = ("--mm-model", "--mm-data", "--mm-tool", "--fsdp2-config-path")
    wanted = trainer.config(POINTS[name])["arguments"]
    assert {k: v for k, v in got.items() if k not in paths} == {
        k: v for k, v in wanted.items() if k not in paths
    }
    changed = [word for word in launch.arguments if word.startswith(str(tmp_path / "export"))]
    assert len(changed) == len(trainer.files(POINTS[name])) - 1


def test_comments_of_a_yaml_are_kept(tmp_path: Path) -> None:
    trainer = trainer_for(make_checkout(tmp_path / "mm"), "sharded")
    files = trainer.files({"fsdp_size": 4})
    assert "# all" in files["shards.yaml"]
    assert "sharding_size: 4" in files["shards.yaml"]
