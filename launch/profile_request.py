"""Dynamic profiling from the launcher's side: asking a running trial, and reading its answers.

The request is a file in the trial's folder, twice: for ranks that look for it by
`launch.rank.commands`, and for torch_npu's own dynamic_profile, which runs in any trainer on
NPUs whose ranks have `PROF_CONFIG_PATH` set to `DYNAMIC_FOLDER` of the trial.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.json_object import json_object
from autotune.profile_plan import ProfilePlan
from launch.rank.commands import PROFILE_FOLDER, REQUEST_FILE

DYNAMIC_FOLDER = f"{PROFILE_FOLDER}/dynamic"
"""`PROF_CONFIG_PATH` of a trial's ranks, relative to the trial's folder."""

DYNAMIC_FILE = "profiler_config.json"

AT_ONCE = -1
"""`start_step` of torch_npu's dynamic_profile that means the next step, whatever its number."""


@dataclass(frozen=True)
class ProfileAnswer:
    """What one rank says to a request.

    path: of the profile, relative to the trial's folder; None where there is none. steps: the
    trainer's numbers of the profiled steps. size_bytes: on disk. error: why there is none.
    """

    rank: int
    path: str | None = None
    steps: tuple[int, ...] = ()
    size_bytes: int = 0
    error: str | None = None


def request_profile(trial_folder: Path, plan: ProfilePlan) -> str:
    """Asks the ranks of a running trial to profile their next steps; the request's id.

    Side effect: writes into `trial_folder`, each file at once as a whole. A request that the
    ranks have not seen yet is replaced.
    """
    name = uuid.uuid4().hex[:12]
    folder = trial_folder.absolute()
    config = dynamic_profile_config(plan, AT_ONCE, folder / PROFILE_FOLDER)
    _write(folder / DYNAMIC_FOLDER / DYNAMIC_FILE, config)
    _write(folder / REQUEST_FILE, {"id": name, **profile_options(plan)})
    return name


def profile_answer(trial_folder: Path, request: str) -> list[ProfileAnswer]:
    """What the trial's ranks have answered to a request so far, by rank.

    Ranks that do not collect say nothing. Neither does torch_npu's dynamic_profile in a
    trainer without rank records: its folders appear beside the others.
    """
    answers = []
    for path in trial_folder.glob("rank*.jsonl"):
        rank = path.stem.removeprefix("rank")
        if rank.isdecimal():
            answers += _answers(int(rank), path, request)
    return sorted(answers, key=lambda answer: answer.rank)


def profile_options(plan: ProfilePlan) -> dict[str, Any]:
    """A plan as the plain values that ranks read."""
    return {**dataclasses.asdict(plan), "ranks": list(plan.ranks)}


def dynamic_profile_config(plan: ProfilePlan, start_step: int, folder: Path) -> dict[str, Any]:
    """`profiler_config.json` of torch_npu's dynamic_profile.

    start_step: number of the first step under the profiler, as dynamic_profile counts them
    from 1, or AT_ONCE. folder: where profiles are written.

    The raw data are not parsed in the rank, where that would lie in steps that may be scored:
    `torch_npu.profiler.profiler.analyse(folder)` does it once the trial is over.
    Source: torch_npu 2.13, profiler/_dynamic_profiler/_dynamic_profiler_config_context.py.
    """
    everyone = -1 in plan.ranks
    return {
        "activities": ["CPU", "NPU"] if plan.with_cpu else ["NPU"],
        "prof_dir": str(folder),
        "analyse": False,
        "async_mode": False,
        "record_shapes": plan.record_shapes,
        "profile_memory": plan.profile_memory,
        "with_stack": plan.with_stack,
        "with_flops": plan.with_flops,
        "with_modules": plan.with_modules,
        "active": plan.steps,
        "warmup": plan.warmup_steps,
        "start_step": start_step,
        "is_rank": not everyone,
        "rank_list": [] if everyone else list(plan.ranks),
        "experimental_config": {
            "profiler_level": plan.profiler_level,
            "aic_metrics": plan.aic_metrics,
            "l2_cache": plan.l2_cache,
            "record_op_args": plan.record_op_args,
            "data_simplification": plan.data_simplification,
            "export_type": [plan.export_type.lower()],
            "gc_detect_threshold": plan.gc_detect_threshold,
        },
    }


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Replaces the file at once, with a time of change in a second that it did not have before.

    torch_npu notices a change by the whole second of that time, which must also be later than
    the second in which it started. Hence a moment ahead.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    before = path.stat().st_mtime if path.exists() else 0.0
    changed = max(time.time(), before) + 1
    os.utime(new, (changed, changed))
    new.replace(path)


def _answers(rank: int, path: Path, request: str) -> list[ProfileAnswer]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    # Most lines are steps; JSON takes its time over thousands of them.
    entries = [_entry(line) for line in lines if request in line]
    return [
        _answer(rank, entry)
        for entry in entries
        if entry.get("event") == "profile" and entry.get("id") == request
    ]


def _entry(line: str) -> dict[str, Any]:
    try:
        return json_object(line)
    except ValueError:  # the line is still being written
        return {}


def _answer(rank: int, entry: Mapping[str, Any]) -> ProfileAnswer:
    if "error" in entry:
        return ProfileAnswer(rank, error=str(entry["error"]))
    return ProfileAnswer(
        rank, str(entry.get("path")), tuple(entry.get("steps", ())), int(entry.get("bytes", 0))
    )
