"""Whether the 95 % intervals of separate trials of one point hold what they say.

Runs one point again and again, each time as a trial of its own, on a quiet machine, and
counts the intervals that contain the mean of all trials:

    python benchmarks/repeatability.py model=tiny_vlm --trials 20
    python benchmarks/repeatability.py model=tiny_vlm --trials 20 --point '{"sp_degree": 1, ...}'
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
from pathlib import Path

from autotune.cli.wiring import compose_problem, make_launcher
from autotune.measure.outcome import Outcome
from autotune.space.point import Point
from autotune.sweep.runner import Runner, RunOrder, Yardstick


def main() -> None:
    """Prints a line a trial, then how many intervals hold the mean of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overrides", nargs="+", help="as for autotune, such as model=tiny_vlm")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--point", type=json.loads, help="parameters as JSON; the baseline if none")
    parser.add_argument("--folder", type=Path, help="where the records are kept")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="repeatability-"))
    outcomes = _run(tuple(arguments.overrides), arguments.point, arguments.trials, folder)
    times = [outcome.batch_time_s or 0.0 for outcome in outcomes]
    grand = statistics.fmean(times)
    holding = 0
    for number, outcome in enumerate(outcomes):
        low, high = outcome.batch_time_ci95_s or (float("nan"), float("nan"))
        holding += low <= grand <= high
        print(
            f"trial {number:>2}  {(outcome.batch_time_s or 0) * 1e3:7.1f} ms  "
            f"{low * 1e3:7.1f} to {high * 1e3:7.1f}  {'' if low <= grand <= high else 'MISSES'}"
        )
    peaks = [outcome.peak_memory_bytes or 0 for outcome in outcomes]
    print(
        f"mean of all {grand * 1e3:.1f} ms, spread between trials "
        f"{statistics.stdev(times) / grand:.1%}; {holding} of {len(outcomes)} intervals hold it; "
        f"peak memory within {(max(peaks) - min(peaks)) / min(peaks):.2%}; records in {folder}"
    )


def _run(overrides: tuple[str, ...], point: object, trials: int, folder: Path) -> list[Outcome]:
    """Each trial as a sweep runs it: it ends when its interval is narrow enough."""
    problem = compose_problem(overrides, None)
    plan = problem.sweep_plan
    where = problem.space.baseline if point is None else Point(point)
    outcomes = []
    with contextlib.closing(make_launcher(problem.config)) as launcher:
        runner = Runner(launcher, problem.trainer, plan.placement, plan.deadlines, plan.judge)
        for number in range(trials):
            home = folder / f"{number:04d}"
            home.mkdir(parents=True)
            runner.start(RunOrder(number, where, 1, home, plan.measurement, plan.race))
            while not (ended := runner.wait(0.5, Yardstick(plan.judge.spread))):
                pass
            outcomes.append(ended[0].outcome)
    return outcomes


if __name__ == "__main__":
    main()
