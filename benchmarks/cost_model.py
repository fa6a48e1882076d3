"""How well the cost model predicts a space that has been measured as a whole.

For time and peak memory: the rank correlation without any run, then, calibrated by 5 to 40
random points, rank correlation and median relative error over the points that it has not seen
(medians over the draws).

    python benchmarks/cost_model.py studies/whole --model tiny_vlm
    python benchmarks/cost_model.py table.csv --model tiny_dit --draws 100

A table has a column a parameter, batch_time_s and peak_memory_bytes (docs/design.md).
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from autotune.config.compose import compose_config
from autotune.predict.calibrated import CalibratedModel
from autotune.predict.cost_model import CostModel
from autotune.predict.memory_terms import MEMORY_TERMS
from autotune.predict.time_terms import TIME_TERMS
from autotune.space.definition import Parameter, SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import plain

_RUNS = (5, 10, 20, 40)
_NOISE = {"time": 0.1, "memory": 0.03}


def main() -> None:
    """Prints a table for time and one for memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a study folder, or a table as CSV")
    parser.add_argument("--model", required=True, help="whose figures and space these are")
    parser.add_argument("--draws", type=int, default=50)
    arguments = parser.parse_args()
    config = compose_config((f"model={arguments.model}",), None).config
    space = LegalSpace.build(SpaceDefinition.parse(config.space, config.facts))
    model = CostModel.of(space, config.facts)
    assert model is not None, f"model={arguments.model} has no figures"
    measured = read(arguments.source, space.parameters)
    codes = np.array(measured["codes"].tolist(), dtype=np.int16)
    print(f"{len(measured)} points")
    for name, column, terms, prior, names in (
        ("time", "batch_time_s", model.time_terms(codes), model.time_prior, TIME_TERMS),
        (
            "memory",
            "peak_memory_bytes",
            model.memory_terms(codes),
            model.memory_prior,
            MEMORY_TERMS,
        ),
    ):
        values = measured[column].to_numpy(dtype=float)
        report(name, terms, values, prior, names, arguments.draws)


def report(
    name: str,
    terms: np.ndarray,
    values: np.ndarray,
    prior: np.ndarray,
    names: tuple[str, ...],
    draws: int,
) -> None:
    """Prints one quantity's table, and the weights that all points give."""
    uncalibrated = np.log(terms @ prior)
    print(f"\n{name}\n   uncalibrated  rank {spearman(uncalibrated, values):.2f}")
    for runs in (runs for runs in _RUNS if runs < len(values) - 1):
        scores = []
        for seed in range(draws):
            order = np.random.default_rng(seed).permutation(len(values))
            seen, rest = order[:runs], order[runs:]
            fitted = CalibratedModel.fit(terms[seen], values[seen], prior, _NOISE[name])
            predicted = fitted.predict(terms[rest])
            errors = np.abs(np.exp(predicted) / values[rest] - 1)
            scores.append((spearman(predicted, values[rest]), np.median(errors), errors.max()))
        rank, middle, worst = np.median(scores, axis=0)
        print(f"   {runs:3d} runs  rank {rank:.2f}  median error {middle:6.1%}  worst {worst:.0%}")
    fitted = CalibratedModel.fit(terms, values, prior, _NOISE[name])
    parts = terms * fitted.weights
    shares = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    errors = np.abs(np.exp(fitted.predict(terms)) / values - 1)
    print(f"   all runs  rank {spearman(fitted.predict(terms), values):.2f}", end="  ")
    print(f"median error {np.median(errors):.1%}; weight over prior, share of the whole:")
    for term, weight, before, share in zip(names, fitted.weights, prior, shares, strict=True):
        if share > 0:
            print(f"      {term:<18} {weight / before:8.3f}  {share:5.1%}")


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Rank correlation."""
    ranks = pd.DataFrame({"first": first, "second": second}).rank()
    return float(ranks["first"].corr(ranks["second"]))


def read(source: Path, parameters: tuple[Parameter, ...]) -> pd.DataFrame:
    """Measured points: codes, batch_time_s and peak_memory_bytes."""
    rows = journal_rows(source) if source.is_dir() else csv_rows(source)
    kept = [
        {**row, "codes": [code(parameter, row) for parameter in parameters]}
        for row in rows
        if row["batch_time_s"] and row["peak_memory_bytes"]
    ]
    return pd.DataFrame(kept)


def journal_rows(study: Path) -> list[dict[str, Any]]:
    """The trials of a study folder."""
    lines = (study / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    return [{**trial, **trial["parameters"]} for trial in trials]


def csv_rows(table: Path) -> list[dict[str, Any]]:
    """The rows of a table."""
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def code(parameter: Parameter, row: Mapping[str, Any]) -> int:
    """The index of the row's choice, -1 where the parameter has none."""
    value = row.get(parameter.name)
    if value is None or value == "":
        return -1
    return [plain(choice) for choice in parameter.choices].index(plain(value))


if __name__ == "__main__":
    main()
