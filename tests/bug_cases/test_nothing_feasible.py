"""Case 17: a night without a feasible trial ends with an answer."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from launch.simulated import SimulatedTrial

from .conftest import Program, broken, out_of_memory, ran

CRASH = {"event": "error", "kind": "exception", "message": "KeyError: 'learning_rate'"}


@pytest.mark.parametrize(
    ("trial", "causes"),
    [
        (out_of_memory(), ["oom: rank 0 ran out of memory: no memory"]),
        (ran(peak=2000), ["over_limit: peak memory 2.0 KiB is over the limit of 1000 B"]),
        (broken([CRASH]), ["failed: rank 0 failed: KeyError: 'learning_rate'"]),
    ],
    ids=["all out of memory", "all over the limit", "all crash"],
)
def test_it_is_exit_code_3_with_the_causes_and_no_best(
    program: Program, capsys: pytest.CaptureFixture[str], trial: SimulatedTrial, causes: list[str]
) -> None:
    program.behave = lambda values, request: trial
    assert program.run() == 3
    printed = capsys.readouterr()
    assert "no feasible configuration was found" in printed.out
    assert all(f" x {cause}" in printed.out for cause in causes)
    assert "Traceback" not in printed.err
    assert not (program.study / "best.yaml").exists()
    assert "**No feasible configuration was found.**" in program.report
    assert len(table(program.study)) == len(program.trials) >= 3
    for verb in ("status", "export", "report"):
        assert program.run(verb=verb) == (2 if verb == "export" else 0)
    assert "has no feasible configuration yet" in capsys.readouterr().err


def table(study: Path) -> list[dict[str, str]]:
    with (study / "report" / "trials.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
