"""A program's own script, started behind our hook in its ranks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from autotune.ports import MeasurementPlan
from launch.profile_request import profile_options
from launch.rank.hooks.steps import PLAN_VARIABLE

_RUN_HOOKED = Path(__file__).resolve().parents[1] / "rank" / "run_hooked.py"


def hooked_argv(python: str | None, hook: str, words: Sequence[str]) -> tuple[str, ...]:
    """The words that run a script and its arguments behind a hook of `launch.rank.hooks`."""
    return (python or sys.executable, str(_RUN_HOOKED), hook, *words)


def hooked_plan(plan: MeasurementPlan, nodes: int) -> dict[str, str]:
    """The environment that tells the hook what a trial plans."""
    profile = None if plan.profile is None else profile_options(plan.profile)
    steps = plan.warmup_steps + plan.measured_steps
    told = {"steps": steps, "profile": profile, "agree": nodes == 1}
    return {PLAN_VARIABLE: json.dumps(told)}
