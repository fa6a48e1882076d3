"""Many runs -> the rows of `summary.csv`, `curves.csv` and `runs.csv`. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.replay.case import ReplayCase
from autotune.replay.outcomes import Floats
from autotune.replay.run import NEAR, SeedRun

Row = dict[str, object]


def summary_row(case: ReplayCase, sampler: str, runs: Sequence[SeedRun]) -> Row:
    """One sampler in one row: the columns of the contract (docs/design.md) first.

    Counts (oom, duplicates, illegal, launches) are means a run. A standard error is that of
    the mean or share beside it. median_evals_to_5pct is None where half of the seeds or more
    never come near the optimum.
    """
    table = case.table
    regrets = [regret(case, run.exported_s) for run in runs]
    hits = [run.exported_s <= NEAR * table.optimum_s for run in runs]
    share = statistics.fmean(hits)
    half = (case.evaluations + 1) // 2
    return {
        "sampler": sampler,
        "mean_regret": statistics.fmean(regrets),
        "hit_5pct": share,
        "median_evals_to_5pct": _median_evaluations(case, runs),
        "score": score(mean_best(runs), case.random_expectation_s, table.optimum_s),
        "oom": statistics.fmean(refused(case, run.rows) for run in runs),
        "duplicates": statistics.fmean(run.duplicates for run in runs),
        "ask_ms": statistics.fmean(run.ask_ms for run in runs),
        "mean_regret_se": _error_of_mean(regrets),
        "hit_5pct_se": math.sqrt(share * (1 - share) / len(runs)),
        "oom_second_half": statistics.fmean(refused(case, run.rows[half:]) for run in runs),
        "illegal": statistics.fmean(run.illegal for run in runs),
        "launches": statistics.fmean(run.launches for run in runs),
        "seeds": len(runs),
        "evaluations": case.evaluations,
        "rows": len(table),
        "optimum_s": table.optimum_s,
    }


def regret(case: ReplayCase, time_s: float) -> float:
    """By what share a time is above the optimum."""
    return time_s / case.table.optimum_s - 1


def score(best_s: Floats, random_s: Floats, optimum_s: float) -> float:
    """(R - F) / (R - optimum), averaged over the evaluations: 0 is random search, 1 the optimum.

    best_s: F, the mean best of a sampler, random_s: R, what random search can expect, both in
    seconds by evaluation. Evaluations at which random search has the optimum for certain tell
    nothing and are left out; NaN where none is left.

    Source: Willemsen et al., A methodology for comparing optimization algorithms for
    auto-tuning, Future Generation Computer Systems 159, 2024.
    """
    room = random_s - optimum_s
    tells = room > 1e-12 * optimum_s
    if not tells.any():
        return math.nan
    return float(np.mean((random_s[tells] - best_s[tells]) / room[tells]))


def mean_best(runs: Sequence[SeedRun]) -> Floats:
    """Seconds by evaluation, the mean over the seeds."""
    mean: Floats = np.mean([run.best_s for run in runs], axis=0)
    return mean


def refused(case: ReplayCase, rows: Sequence[int]) -> int:
    """Launches that came to nothing since the point does not run, memory being the cause.

    A table that gives no cause counts too.
    """
    return sum(row >= 0 and bool(case.table.refused[row]) for row in rows)


def _median_evaluations(case: ReplayCase, runs: Sequence[SeedRun]) -> float | None:
    found = [run.evaluations_to(NEAR * case.table.optimum_s) for run in runs]
    median = statistics.median(math.inf if number is None else number for number in found)
    return median if math.isfinite(median) else None


def _error_of_mean(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def curve_rows(case: ReplayCase, runs: Mapping[str, Sequence[SeedRun]]) -> list[Row]:
    """A row a sampler and evaluation: mean best so far in seconds, regret, near hits.

    Quartiles are those of the regret over the seeds.
    """
    optimum, random_s = case.table.optimum_s, case.random_expectation_s
    rows: list[Row] = []
    for sampler, its_runs in runs.items():
        best = np.array([run.best_s for run in its_runs])
        quartiles = np.quantile(best / optimum - 1, (0.25, 0.75), axis=0)
        for at in range(case.evaluations):
            mean = float(best[:, at].mean())
            rows.append(
                {
                    "sampler": sampler,
                    "evaluation": at + 1,
                    "mean_best_s": mean,
                    "mean_regret": mean / optimum - 1,
                    "hit_5pct": float((best[:, at] <= NEAR * optimum).mean()),
                    "regret_q25": float(quartiles[0, at]),
                    "regret_q75": float(quartiles[1, at]),
                    "random_expectation_s": float(random_s[at]),
                }
            )
    return rows


def run_rows(case: ReplayCase, runs: Mapping[str, Sequence[SeedRun]]) -> list[Row]:
    """A row a sampler and seed; best_s is the true time of the exported point in seconds."""
    half = (case.evaluations + 1) // 2
    return [
        {
            "sampler": sampler,
            "seed": run.seed,
            "best_s": run.exported_s,
            "regret": regret(case, run.exported_s),
            "evals_to_5pct": run.evaluations_to(NEAR * case.table.optimum_s),
            "oom": refused(case, run.rows),
            "oom_second_half": refused(case, run.rows[half:]),
            "duplicates": run.duplicates,
            "illegal": run.illegal,
            "launches": run.launches,
            "ask_ms": run.ask_ms,
        }
        for sampler, its_runs in runs.items()
        for run in its_runs
    ]
