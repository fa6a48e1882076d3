"""Asking a running trial for a profile, and torch_npu's own way of being asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from autotune.profile_plan import ProfilePlan
from launch.profile_request import (
    AT_ONCE,
    ProfileAnswer,
    dynamic_profile_config,
    profile_answer,
    request_profile,
)

SOURCES = "TORCH_NPU_SOURCES"
"""Names a folder with torch_npu unpacked from its wheel, for one test; it cannot be installed."""

FULL = ProfilePlan(
    steps=3,
    warmup_steps=2,
    ranks=(0, 5),
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
    with_flops=True,
    with_modules=True,
    profiler_level="Level2",
    aic_metrics="MemoryUB",
    l2_cache=True,
    record_op_args=True,
    data_simplification=False,
    export_type="Db",
    gc_detect_threshold=2.5,
)


def test_a_request_lies_there_as_a_whole_for_both_kinds_of_ranks(tmp_path: Path) -> None:
    name = request_profile(tmp_path, FULL)
    request = json.loads((tmp_path / "profile/request.json").read_text())
    assert (request["id"], request["steps"], request["ranks"]) == (name, 3, [0, 5])
    dynamic = json.loads((tmp_path / "profile/dynamic/profiler_config.json").read_text())
    assert dynamic == dynamic_profile_config(FULL, AT_ONCE, tmp_path / "profile")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "profiler_config.json",
        "request.json",
    ]


def test_torch_npu_notices_every_request(tmp_path: Path) -> None:
    """It compares whole seconds, with each other and with the second in which it started."""
    path = tmp_path / "profile/dynamic/profiler_config.json"
    seconds = [int(time.time())]
    for _ in range(3):
        request_profile(tmp_path, ProfilePlan())
        seconds.append(int(path.stat().st_mtime))
    assert seconds == sorted(set(seconds))


def test_answers_are_those_to_the_request(tmp_path: Path) -> None:
    records: dict[int, list[dict[str, Any]]] = {
        0: [
            {"event": "step", "step": 0, "time_s": 0.1},
            {"event": "profile", "id": "old", "path": "profile/a", "steps": [1], "bytes": 5},
            {"event": "profile", "id": None, "path": "profile/b", "steps": [2], "bytes": 6},
            {"event": "profile", "id": "new", "path": "profile/c", "steps": [3, 4], "bytes": 7},
        ],
        10: [{"event": "profile", "id": "new", "error": "OSError: No space left on device"}],
        2: [{"event": "start"}],
    }
    for rank, lines in records.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"rank{rank}.jsonl").write_text(text + '{"event": "profile", "id": "new')
    assert profile_answer(tmp_path, "new") == [
        ProfileAnswer(0, "profile/c", (3, 4), 7),
        ProfileAnswer(10, error="OSError: No space left on device"),
    ]
    assert profile_answer(tmp_path, "never asked") == []


def test_without_ranks_there_is_no_answer(tmp_path: Path) -> None:
    assert profile_answer(tmp_path, "a") == []


def test_the_configuration_of_dynamic_profile() -> None:
    """Keys as in torch_npu 2.13, profiler/_dynamic_profiler/_dynamic_profiler_monitor_shm.py."""
    assert dynamic_profile_config(FULL, 40, Path("/trial/profile")) == {
        "activities": ["CPU", "NPU"],
        "prof_dir": "/trial/profile",
        "analyse": False,
        "async_mode": False,
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_flops": True,
        "with_modules": True,
        "active": 3,
        "warmup": 2,
        "start_step": 40,
        "is_rank": True,
        "rank_list": [0, 5],
        "experimental_config": {
            "profiler_level": "Level2",
            "aic_metrics": "MemoryUB",
            "l2_cache": True,
            "record_op_args": True,
            "data_simplification": False,
            "export_type": ["db"],
            "gc_detect_threshold": 2.5,
        },
    }


def test_all_ranks_are_no_list_of_ranks() -> None:
    config = dynamic_profile_config(ProfilePlan(ranks=(-1,), with_cpu=False), AT_ONCE, Path("p"))
    assert (config["is_rank"], config["rank_list"]) == (False, [])
    assert config["activities"] == ["NPU"]


@pytest.mark.skipif(SOURCES not in os.environ, reason=f"{SOURCES} names no folder")
@pytest.mark.parametrize(("rank", "collects"), [(5, True), (1, False)])
def test_torch_npus_parser_reads_what_was_meant(tmp_path: Path, rank: int, collects: bool) -> None:
    config = tmp_path / "profiler_config.json"
    config.write_text(json.dumps(dynamic_profile_config(FULL, AT_ONCE, tmp_path)))
    program = Path(__file__).with_name("torch_npu_config.py")
    ended = subprocess.run(
        [sys.executable, str(program), os.environ[SOURCES], str(config), str(rank)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = json.loads(ended.stdout)
    experimental = found.pop("experimental")
    assert found == {
        "valid": collects,
        "activities": ["CPU", "NPU"],
        "prof_path": str(tmp_path),
        "analyse": False,
        "active": 3,
        "warmup": 2,
        "start_step": -1,
        "at_once": True,
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_flops": True,
        "with_modules": True,
    }
    assert experimental["_profiler_level"] == "Level2"
    assert experimental["_aic_metrics"] == "ACL_AICORE_MEMORY_UB"
    assert experimental["_export_type"] == ["db"]
    assert experimental["_gc_detect_threshold"] == 2.5
    assert experimental["_l2_cache"]
    assert experimental["record_op_args"]
    assert not experimental["_data_simplification"]
