"""How long trials take to start with ranks forked from one process, against cold ranks.

Runs one point in turns, forked and cold, with a fixed number of steps, on a quiet machine:

    python benchmarks/start_up.py model=tiny_vlm --pairs 6
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import statistics
import tempfile
import time
from pathlib import Path

from autotune.cli.wiring import compose_problem, make_launcher
from autotune.ports import Launcher, RankProgram, TrialRequest

KINDS = ("forked", "cold")
_LOOK_S = 0.01


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds from the launch until every rank started, made a step, and the trial ended."""

    start: float
    first_step: float
    end: float


def main() -> None:
    """Prints a line a trial, then means and the ratio of cold to forked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overrides", nargs="+", help="as for autotune, such as model=tiny_vlm")
    parser.add_argument("--pairs", type=int, default=6, help="trials of each kind")
    arguments = parser.parse_args()
    problem = compose_problem(tuple(arguments.overrides), None)
    plan = problem.sweep_plan
    folder = Path(tempfile.mkdtemp(prefix="start-up-"))
    times: dict[str, list[Times]] = {kind: [] for kind in KINDS}
    with contextlib.closing(make_launcher(problem.config)) as launcher:
        for number in range(2 * arguments.pairs + 1):
            # The order of a pair alternates; what comes first of all warms caches up.
            kind = KINDS[(number + number // 2) % 2]
            home = folder / f"{number:04d}"
            home.mkdir()
            program = problem.trainer.trial_program(problem.space.baseline, plan.measurement, home)
            request = TrialRequest(
                number, 1, home, _as(program, kind), plan.placement, plan.deadlines
            )
            one = _time(launcher, request)
            print(
                f"trial {number:>2}  {kind:<6}  start {one.start:5.2f} s  "
                f"first step {one.first_step:5.2f} s  end {one.end:5.2f} s"
                f"{'  (not counted)' if number == 0 else ''}"
            )
            if number > 0:
                times[kind].append(one)
    for name in ("start", "first_step", "end"):
        forked, cold = ([getattr(one, name) for one in times[kind]] for kind in KINDS)
        print(
            f"{name:<10}  forked {statistics.fmean(forked):5.2f} s  "
            f"cold {statistics.fmean(cold):5.2f} s  "
            f"ratio {statistics.fmean(cold) / statistics.fmean(forked):.2f}"
        )


def _as(program: RankProgram, kind: str) -> RankProgram:
    if program.preload is None:
        raise SystemExit("the trainer preloads nothing on this device; try cluster.device=cpu")
    return program if kind == "forked" else dataclasses.replace(program, preload=None)


def _time(launcher: Launcher, request: TrialRequest) -> Times:
    seen: dict[str, float] = {}
    began = time.monotonic()
    launcher.start(request)
    while not (ended := launcher.wait(_LOOK_S)):
        for event in ("start", "step"):
            if event not in seen and _all_have(request, event):
                seen[event] = time.monotonic() - began
    if "step" not in seen:
        raise SystemExit(f"trial {request.trial}: {ended[0].reason}; see {request.folder}")
    return Times(seen["start"], seen["step"], time.monotonic() - began)


def _all_have(request: TrialRequest, event: str) -> bool:
    """Whether every rank has made a record of this kind."""
    for rank in range(request.placement.world_size):
        path = request.folder / f"rank{rank}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        if not any(f'"event": {json.dumps(event)}' in line for line in lines):
            return False
    return True


if __name__ == "__main__":
    main()
