"""Writes a table for `replay` from studies that have measured a whole space.

Record first, on a machine that does nothing else; with a device that holds every point, times
are known for the infeasible ones too (about seven seconds a point):

    python -m autotune model=tiny_vlm study.name=whole search.sampler=exhaustive \
        search.max_trials=1000 cluster.device_memory=2GiB memory.limit=1.0 \
        certify.enabled=false measure.race=false measure.min_steps=8 measure.max_steps=8 \
        profile.light=null profile.full=null
    python benchmarks/record_table.py studies/whole --limit 60.72MiB \
        --out benchmarks/tables/tiny_vlm.csv

Of several studies of one space a point's time is the mean of those that were not disturbed, each
freed from the drift of its machine by the control runs. Points whose peak is over the limit are
written as `over_limit`, with their time and peak.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from autotune.certify.standing import undisturbed
from autotune.cli.studies import read_study
from autotune.config.quantities import parse_bytes
from autotune.measure.spread import RunSpread
from autotune.space.point import Point


@dataclass
class Recorded:
    """One point: the seconds of its runs, one a study, and the largest of their peaks."""

    times_s: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def time_s(self, spread: RunSpread) -> float:
        """The mean of the runs that were not disturbed."""
        return statistics.fmean(self.times_s[n] for n in undisturbed(self.times_s, spread))


def recorded(folders: Sequence[Path]) -> tuple[dict[Point, Recorded], RunSpread]:
    """Every measured point of the studies, in the order of the first; how far runs differ.

    A later study's machine may be faster as a whole: its times are scaled by the median ratio.
    """
    points: dict[Point, Recorded] = {}
    ratios: list[float] = []
    spread = RunSpread(0.0)
    for folder in folders:
        results = read_study(folder).results
        by_point = {standing.point: standing for standing in results.standings}
        shared = [p for p in by_point if p in points]
        level = 1.0
        if shared:
            changes = [math.log(by_point[p].time_s / points[p].times_s[0]) for p in shared]
            level = math.exp(statistics.median(changes))
            ratios += [change - math.log(level) for change in changes]
        for record in results.records:
            standing = by_point.get(record.parameters)
            if standing is None:
                raise SystemExit(f"{folder}: {record.parameters} has no time: {record.status}")
            kept = points.setdefault(record.parameters, Recorded())
            kept.times_s.append(standing.time_s / level)
            kept.peak_bytes = max(kept.peak_bytes, record.outcome.peak_memory_bytes or 0)
    if len(ratios) > 1:
        one_run = statistics.median(map(abs, ratios)) / 0.6745 / math.sqrt(2)
        spread = RunSpread(one_run)
        print(f"runs of one point differ by {one_run:.1%} (standard deviation)")
    return points, spread


def main() -> None:
    """Writes the table and says what it is like."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", type=Path, nargs="+")
    parser.add_argument("--limit", required=True, help="on peak memory, such as 60.72MiB")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    limit = parse_bytes(given.limit, "--limit")
    points, spread = recorded(given.studies)
    rows = [
        {
            **point,
            "status": "ok" if found.peak_bytes <= limit else "over_limit",
            "batch_time_s": round(found.time_s(spread), 6),
            "peak_memory_bytes": found.peak_bytes,
        }
        for point, found in points.items()
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    last = ["status", "batch_time_s", "peak_memory_bytes"]
    table = pd.DataFrame(rows)[[name for name in names if name not in last] + last]
    for column in table.select_dtypes("float"):
        if column != "batch_time_s":  # inactive parameters leave gaps; the rest are whole numbers
            table[column] = table[column].astype("Int64")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.out, index=False)
    fits = table[table["status"] == "ok"]["batch_time_s"]
    print(
        f"{given.out}: {len(table)} points, {1 - len(fits) / len(table):.0%} over the limit; "
        f"the optimum is {fits.min() * 1e3:.1f} ms, {(fits <= 1.05 * fits.min()).sum()} points "
        f"are within 5 % of it; without the limit {table['batch_time_s'].min() * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
