"""Device time of real sweeps until a point near the recorded optimum has been measured.

For every seed a sweep by each sampler, one after the other, ended as soon as it has measured a
point within 5 % of the optimum of a recorded table (`record_table.py`). Counted are the seconds
of all launches until then: trials, control runs, and what ran again.

    python benchmarks/end_to_end.py --model tiny_vlm --table benchmarks/tables/tiny_vlm.csv
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.replay.table import ReplayTable, read_table
from autotune.study.paths import StudyPaths
from autotune.study.study import repeats_journal_of, trials_journal

_TICK_S = 0.5
_NEAR = 1.05


@dataclass(frozen=True)
class Outcome:
    """seconds: of device time until a near point, or of the whole sweep. trials: launched."""

    seconds: float
    trials: int
    found: bool


def near_points(table: ReplayTable) -> set[str]:
    """The usable points within 5 % of the optimum, by their text."""
    bound_s = _NEAR * table.optimum_s
    return {key(table.point(row)) for row in range(len(table)) if table.counted_s[row] <= bound_s}


def key(point: Mapping[str, Any]) -> str:
    """The same for a point of the table and of the study."""
    return json.dumps({name: str(value) for name, value in sorted(point.items())})


def device_time(paths: StudyPaths, near: set[str]) -> Outcome:
    """What the sweep has spent so far, or had when a near point's trial ended."""
    trials = trials_journal(paths).read()
    runs = [*trials, *(repeat.record for repeat in repeats_journal_of(paths).read())]
    ended = [t.ended_at for t in trials if key(t.parameters) in near and t.status.is_usable]
    until = min(ended, default=float("inf"))
    launched = [t for t in trials if t.was_launched and t.ended_at <= until]
    spent = sum(run.cost_s for run in runs if run.ended_at <= until)
    return Outcome(spent, len(launched), bool(ended))


def sweep(model: str, sampler: str, seed: int, most: int, near: set[str]) -> Outcome:
    """One sweep in a folder of its own, ended when it has found a near point."""
    with tempfile.TemporaryDirectory() as folder:
        paths = StudyPaths(Path(folder) / "study")
        words = [f"model={model}", f"search.sampler={sampler}", f"search.seed={seed}"]
        words += [f"search.max_trials={most}", f"study.dir={paths.root}"]
        with (Path(folder) / "log").open("w") as log:
            command = [sys.executable, "-m", "autotune", *words]
            program = subprocess.Popen(command, stdout=log, stderr=log)
            while program.poll() is None and not device_time(paths, near).found:
                time.sleep(_TICK_S)
            program.send_signal(signal.SIGTERM)
            program.wait()
        outcome = device_time(paths, near)
        if not outcome.trials:
            raise SystemExit((Path(folder) / "log").read_text())
        return outcome


def main() -> None:
    """Prints every sweep, and the ratio of the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny_vlm")
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--samplers", nargs=2, default=["guided", "tpe"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=60, help="trials of one sweep")
    given = parser.parse_args()
    table = read_table(given.table)
    near = near_points(table)
    print(f"{len(table)} points, {len(near)} within 5 % of {table.optimum_s * 1e3:.1f} ms")
    found: dict[str, list[Outcome]] = {sampler: [] for sampler in given.samplers}
    for seed in range(given.seeds):
        for sampler in given.samplers:
            outcome = sweep(given.model, sampler, seed, given.most, near)
            found[sampler].append(outcome)
            print(
                f"seed {seed}  {sampler:<8} {outcome.seconds:7.1f} s of device time, "
                f"{outcome.trials} trials{'' if outcome.found else ', not found'}",
                flush=True,
            )
    totals = [sum(o.seconds for o in found[sampler]) for sampler in given.samplers]
    medians = [statistics.median(o.seconds for o in found[s]) for s in given.samplers]
    print(
        f"{given.samplers[0]} took {totals[0] / totals[1]:.2f} of the device time of "
        f"{given.samplers[1]} in all, {medians[0] / medians[1]:.2f} in the median"
    )


if __name__ == "__main__":
    main()
