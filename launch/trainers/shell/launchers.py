"""Which commands start a training program on several devices, and how their words are divided."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from launch.trainers.shell.reading import plain_name

WRAPPERS = frozenset(
    (
        "chrt",
        "command",
        "env",
        "exec",
        "ionice",
        "nice",
        "nohup",
        "numactl",
        "nsys",
        "setsid",
        "stdbuf",
        "sudo",
        "taskset",
        "time",
        "timeout",
        "unbuffer",
    )
)
"""Commands that start the command in their last words."""

WITHOUT_EFFECT = ("command", "exec", "nohup", "setsid", "time")
"""Those that change nothing about the program, so that they are not kept."""

LAYOUT_OPTIONS = (
    "nproc_per_node",
    "nnodes",
    "node_rank",
    "master_addr",
    "master_port",
    "rdzv_endpoint",
    "rdzv_id",
    "rdzv_backend",
    "local_addr",
    "worker_num",
    "local_worker_num",
)
"""Options of launchers that say where the ranks run."""

LAYOUT_VARIABLES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "NNODES",
    "NPUS_PER_NODE",
    "RANK",
    "LOCAL_RANK",
    "HOSTNAME",
    "HOST_IP",
    "HCCL_IF_IP",
    "NODE_ADDR",
    "RANK_TABLE_FILE",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
)
"""Exported variables that say the same."""

_MODULES = {
    "torch.distributed.run": "torch.distributed.run",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_PYTHON = re.compile(r"python[\d.]*")
_FLAGS = {
    # python -m torch.distributed.run --help, torch 2.13; --use_env is launch's own.
    "torch": {
        "standalone",
        "m",
        "module",
        "no_python",
        "run_path",
        "virtual_local_rank",
        "use_env",
        "h",
        "help",
    },
    # https://huggingface.co/docs/accelerate/package_reference/cli
    "accelerate": {
        "cpu",
        "debug",
        "multi_gpu",
        "module",
        "m",
        "no_python",
        "quiet",
        "q",
        "same_network",
        "tpu",
        "use_deepspeed",
        "use_fsdp",
        "use_megatron_lm",
        "use_xpu",
    },
    # https://deepspeed.readthedocs.io, deepspeed --help
    "deepspeed": {
        "elastic_training",
        "enable_each_rank_log",
        "force_multi",
        "module",
        "no_local_rank",
        "no_python",
        "no_ssh",
        "no_ssh_check",
        "save_pid",
    },
    # https://www.mindspore.cn/docs, msrun: every option takes a value.
    "msrun": set[str](),
}


@dataclass(frozen=True)
class Division:
    """Where the words of a launch change their role; ends are counted in words.

    The program is `words[program]`, preceded by `-m` where it is a module.
    """

    launcher: str
    wrapper_end: int
    launcher_end: int
    program: int
    is_module: bool


def divided(words: Sequence[str]) -> Division | None:
    """How a command launches a program, None where it does not."""
    start = 0
    name = ""
    if words and posixpath.basename(words[0]) in WRAPPERS:
        places = (at for at in range(1, len(words)) if _launcher(words[at:])[0])
        start = next(places, 0)
    name, length = _launcher(words[start:])
    if not name:
        return None
    end = start + length
    flags = _FLAGS["torch" if "torch" in name else name]
    at, is_module = end, False
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        option, joined, _ = words[at].partition("=")
        plain = plain_name(option)
        if words[at] == "--":
            at += 1
            break
        is_module |= plain in ("m", "module") and not joined
        at += 1 if joined or plain in flags else 2
    if at >= len(words):
        return None
    return Division(name, start, end, at, is_module)


def _launcher(words: Sequence[str]) -> tuple[str, int]:
    """The launcher that the first words call, and how many words that takes."""
    name = posixpath.basename(words[0]) if words else ""
    if name in ("torchrun", "msrun", "deepspeed"):
        return name, 1
    if name == "accelerate" and list(words[1:2]) == ["launch"]:
        return name, 2
    is_python = _PYTHON.fullmatch(name) or name.startswith("$")
    if is_python and "-m" in words[1:]:
        at = list(words).index("-m", 1)
        module = words[at + 1] if at + 1 < len(words) else ""
        if module in _MODULES and all(word.startswith("-") for word in words[1:at]):
            return _MODULES[module], at + 2
    return "", 0
