"""What is in use of the devices' memory, as the vendors' own tools tell it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.ports import DeviceType
from launch.bounded_run import run_bounded

_MIB = 1 << 20
_LIMIT_S = 30.0
_NVIDIA_SMI = (
    "nvidia-smi",
    "--query-gpu=index,uuid,memory.used,memory.total",
    "--format=csv,noheader,nounits",
)
_NPU_SMI = ("npu-smi", "info")
# A chip's row: its number, with its physical one on servers with two chips an NPU; where it is on
# the bus; load, memory and high-bandwidth memory, each in use and in all.
_CHIP = re.compile(r"^\|\s*\d+(?:\s+\d+)?\s*\|[^|]*\|(?P<figures>[^|]*/[^|]*/[^|]*)\|\s*$")
_USED_OF_ALL = re.compile(r"(\d+)\s*/\s*(\d+)")


@dataclass(frozen=True)
class MemoryInUse:
    """Bytes of one device, by all processes and the driver."""

    used_bytes: int
    total_bytes: int


def read_device_memory(device: DeviceType, env: Mapping[str, str]) -> dict[str, MemoryInUse] | None:
    """Memory by device, named as in the variables of visible devices; None where nothing tells.

    Side effect: runs nvidia-smi or npu-smi, found by `env`'s PATH.
    """
    match device:
        case "cuda":
            text = _run(_NVIDIA_SMI, env)
            return None if text is None else parse_nvidia_smi(text)
        case "npu":
            text = _run(_NPU_SMI, env)
            return None if text is None else parse_npu_smi(text)
        case "cpu":
            return None


def parse_nvidia_smi(text: str) -> dict[str, MemoryInUse]:
    """By index and by UUID, from lines such as `0, GPU-6c1e..., 1234, 81559` (MiB)."""
    found = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 4 or not (fields[2].isdecimal() and fields[3].isdecimal()):
            continue  # memory is [N/A] where several small devices share one
        memory = MemoryInUse(int(fields[2]) * _MIB, int(fields[3]) * _MIB)
        found[fields[0]] = found[fields[1]] = memory
    return found


def parse_npu_smi(text: str) -> dict[str, MemoryInUse]:
    """By logical number, which counts the chips in the order of the table of `npu-smi info`.

    Seen of versions 23.0 to 26.0, of 910B (a chip an NPU) and 910C (two). A chip without
    high-bandwidth memory, such as a 310P, has its figures in the column before.
    """
    found: dict[str, MemoryInUse] = {}
    for line in text.splitlines():
        chip = _CHIP.match(line)
        if chip is None:
            continue
        pairs = [(int(used), int(total)) for used, total in _USED_OF_ALL.findall(chip["figures"])]
        used, total = next((pair for pair in reversed(pairs) if pair[1] > 0), (0, 0))
        if total:
            found[str(len(found))] = MemoryInUse(used * _MIB, total * _MIB)
    return found


def _run(words: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    try:
        # A driver that hangs may leave it where not even SIGKILL ends it: nobody waits for that.
        ended = run_bounded(words, env, _LIMIT_S)
    except OSError:  # not installed, or not allowed in this container
        return None
    return ended.stdout.decode("utf-8", errors="replace") if ended.status == 0 else None
