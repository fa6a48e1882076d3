"""Memory in use as the vendors' tools print it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from launch.device_memory import (
    MemoryInUse,
    parse_npu_smi,
    parse_nvidia_smi,
    read_device_memory,
)

MIB = 1 << 20
# As in vllm-project/vllm-ascend's issue 2035 (an A3 server: two chips an NPU), shortened.
TWO_CHIPS = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3.7               Version: 24.1.rc3.7                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 178.8       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3397 / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          3186 / 65536         |
+===========================+===============+====================================================+
| 1     Ascend910           | OK            | 185.4       36                0    / 0             |
| 0     2                   | 0000:99:00.0  | 0           0    / 0          59356/ 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 1       0                 | 1712733       | python                   | 56000                   |
+===========================+===============+====================================================+
"""
# As in vllm-project/vllm-ascend's documentation of version 26.0 (a 910B4), in a container that
# sees the NPUs 3 and 6 of its host.
ONE_CHIP = """\
| NPU   Name                | Health        | Power(W)             Temp(C)                 Hugepages-Usage(page)   |
| Chip                      | Bus-Id        | AICore(%)            Memory-Usage(MB)        HBM-Usage(MB)           |
+===========================+===============+======================================================================+
| 3     910B4               | OK            | 82.6                 32                      0    / 0                |
| 0                         | 0000:C1:00.0  | 0                    0    / 0                2871 / 32768            |
+===========================+===============+======================================================================+
| 6     910B4               | Warning       | 82.6                 32                      0    / 0                |
| 0                         | 0000:C2:00.0  | 97                   0    / 0                30011/ 32768            |
| No running processes found in NPU 3                                                                              |
"""  # noqa: E501
WITHOUT_HBM = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Device              | Bus-Id        | AICore(%)   Memory-Usage(MB)                       |
+===========================+===============+====================================================+
| 8     310P3               | OK            | NA          45                0     / 0            |
| 0     0                   | 0000:01:00.0  | 0           1621 / 21527      0    / 0             |
"""


@pytest.mark.parametrize(
    ("text", "used_mib", "total_mib"),
    [
        (TWO_CHIPS, [3397, 3186, 59356], 65536),
        (ONE_CHIP, [2871, 30011], 32768),
        (WITHOUT_HBM, [1621], 21527),
        ("", [], 0),
        ("dcmi model initialized failed, because the device is used. ret is -8020\n", [], 0),
    ],
)
def test_npus_are_numbered_as_they_are_listed(
    text: str, used_mib: list[int], total_mib: int
) -> None:
    assert parse_npu_smi(text) == {
        str(number): MemoryInUse(used * MIB, total_mib * MIB)
        for number, used in enumerate(used_mib)
    }


def test_gpus_have_a_number_and_a_name() -> None:
    text = "0, GPU-11aa, 4, 81559\n1, GPU-22bb, 70000, 81559\n2, GPU-33cc, [N/A], [N/A]\n"
    found = parse_nvidia_smi(text)
    assert found["0"] == found["GPU-11aa"] == MemoryInUse(4 * MIB, 81559 * MIB)
    assert found["1"] == found["GPU-22bb"] == MemoryInUse(70000 * MIB, 81559 * MIB)
    assert "2" not in found


def test_the_tool_is_run_where_there_is_one(tmp_path: Path) -> None:
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    assert read_device_memory("cpu", env) is None
    assert read_device_memory("npu", {"PATH": str(tmp_path)}) is None
    tool = tmp_path / "npu-smi"
    tool.write_text(f"#!/bin/sh\n[ \"$1\" = info ] || exit 1\ncat <<'E'\n{ONE_CHIP}E\n")
    tool.chmod(0o755)
    assert read_device_memory("npu", env) == parse_npu_smi(ONE_CHIP)
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert read_device_memory("npu", env) is None


def test_a_tool_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child holds the pipes open, as the tool of a driver that hangs does."""
    monkeypatch.setattr("launch.device_memory._LIMIT_S", 2.0)
    tool = tmp_path / "npu-smi"
    tool.write_text("#!/bin/bash\ntrap '' TERM\nsleep 555 & echo $! > \"$0.child\"\nwait\n")
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    assert read_device_memory("npu", env) is None
    child = int((tmp_path / "npu-smi.child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
