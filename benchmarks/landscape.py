"""What the space of a model is like, from a study that has measured all of it.

Record the study first; with a device that holds every point, times are known for the
infeasible ones too (about ten seconds a point):

    python -m autotune model=tiny_vlm study.name=whole search.sampler=exhaustive \
        search.max_trials=100000 cluster.device_memory=2GiB memory.limit=60.72MiB
    python benchmarks/landscape.py studies/whole
"""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.measure.outcome import Status
from autotune.study.paths import StudyPaths
from autotune.study.study import trials_journal


def main() -> None:
    """Prints the share of infeasible points, the fastest point, and the best feasible one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    records = trials_journal(StudyPaths(parser.parse_args().study)).read()
    timed = [r for r in records if r.outcome.batch_time_s is not None]
    infeasible = [r for r in records if r.status.violates_memory]
    other = len(records) - len(infeasible) - sum(r.status is Status.OK for r in records)
    print(f"{len(records)} points, {len(infeasible) / len(records):.0%} infeasible, {other} other")
    baseline = next(r for r in records if r.trial == 0)
    feasible = [r for r in timed if r.status is Status.OK]
    fastest = min(timed, key=lambda r: r.outcome.batch_time_s or 0.0)
    for name, record in (
        ("baseline", baseline),
        ("fastest", fastest),
        ("best feasible", min(feasible, key=lambda r: r.outcome.batch_time_s or 0.0, default=None)),
    ):
        if record is None or record.outcome.batch_time_s is None:
            print(f"{name}: none")
            continue
        gain = (baseline.outcome.batch_time_s or 0.0) / record.outcome.batch_time_s
        print(
            f"{name:<14} {record.status.value:<10} {record.outcome.batch_time_s * 1e3:7.1f} ms  "
            f"{gain:.2f} x  {(record.outcome.peak_memory_bytes or 0) / 2**20:6.1f} MiB  "
            f"{record.parameters}"
        )


if __name__ == "__main__":
    main()
