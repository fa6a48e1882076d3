"""The user's launch script and the files that it names, read without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from autotune.config.places import expanded
from autotune.config.schema import Config
from autotune.errors import UserError
from launch.trainers.documents import YamlDocument
from launch.trainers.mindspeed.megatron_arguments import LineArguments
from launch.trainers.mindspeed.megatron_files import (
    CONFIG,
    FSDP2,
    PATH_OPTIONS,
    TOOL,
    TOOL_PATH,
    MegatronFiles,
    OpenFiles,
    TextFile,
)
from launch.trainers.mindspeed.megatron_models import PROGRAMS, TRANSFORMERS
from launch.trainers.shell import read_script, the_launch
from launch.trainers.shell.reading import LaunchCommand
from launch.trainers.sources import Sources


@dataclass(frozen=True)
class MegatronLaunch:
    """name: of the script. launch: what it starts. kind: of the model. files: what it names."""

    name: str
    launch: LaunchCommand
    kind: str
    files: MegatronFiles

    @property
    def program(self) -> str:
        """The training program, as the script names it."""
        return self.launch.program


def read_launch(config: Config, sources: Sources) -> MegatronLaunch:
    """The launch of `model.base.script`, and its files from the checkout. Raises UserError."""
    name = config.model.base.get("script")
    if not isinstance(name, str):
        raise UserError(
            "model.base.script is not given; name the script that you train with, in the "
            "checkout, such as "
            "model.base.script=examples/qwen2.5vl/finetune_qwen2_5_vl_7b.sh"
        )
    arguments = config.model.base.get("arguments") or ()
    given = {key: str(value) for key, value in config.trainer.env.items()}
    text = sources.read(name, "model.base.script")
    launch = the_launch(
        read_script(
            text,
            name,
            [str(word) for word in arguments],
            given,
            lambda path: _is_there(sources, path),
        )
    )
    program = PurePosixPath(launch.program).name
    if program not in PROGRAMS:
        raise UserError(
            f"{name} starts {launch.program}, which is none of the Megatron backends' training "
            f"programs ({', '.join(PROGRAMS)}); for mindspeed_mm/fsdp/train/trainer.py give "
            "trainer=mindspeed_fsdp2"
        )
    kind = PROGRAMS[program]
    files = _files(name, launch, kind, sources)
    return MegatronLaunch(name, launch, kind, files)


def _is_there(sources: Sources, path: str) -> bool:
    return sources.path(path).exists()


def _files(name: str, launch: LaunchCommand, kind: str, sources: Sources) -> MegatronFiles:
    words = launch.arguments
    found: dict[str, TextFile] = {}

    def take(role: str, path: str | None, key: str) -> None:
        if path:
            found[role] = TextFile(path, sources.read(_in_checkout(launch, path), key))

    if kind == TRANSFORMERS and words and words[0].endswith((".yaml", ".yml")):
        take(CONFIG, words[0], f"the configuration that {name} names")
        config = YamlDocument(words[0], found[CONFIG].text)
        take(TOOL, config.get([TOOL_PATH]), f"{TOOL_PATH} in {words[0]}")
    else:
        arguments = LineArguments(words)
        for role in ("model", "data", TOOL):
            path = arguments.text(PATH_OPTIONS[role])
            if not path:
                raise UserError(
                    f"{name} gives no {PATH_OPTIONS[role]} to {launch.program}, which needs one"
                )
            take(role, path, f"{PATH_OPTIONS[role]} in {name}")
    sharding = OpenFiles(MegatronFiles(words, found)).get(PATH_OPTIONS[FSDP2])
    take(FSDP2, sharding, f"{PATH_OPTIONS[FSDP2]} in {name}")
    return MegatronFiles(words, found)


def _in_checkout(launch: LaunchCommand, path: str) -> str:
    """The path of a file from the checkout's root, where the script is started."""
    inside = PurePosixPath(launch.folder) / expanded(path, "a path of the script")
    return str(inside)


_PLACES = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "NNODES", "NPROC_PER_NODE"),
    *("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
)


def exported_by(launch: LaunchCommand) -> Mapping[str, str]:
    """What the script adds to the environment, without where ranks and devices are.

    Those are the launcher's to give in a trial.
    """
    return {name: value for name, value in launch.environment.items() if name not in _PLACES}
