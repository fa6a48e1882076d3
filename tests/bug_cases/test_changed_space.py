"""Case 11: the space has changed since the study began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import MODEL, Program

CHUNK = MODEL["space"]["parameters"]["chunk"]


def batch(*choices: int) -> dict[str, Any]:
    return {"choices": list(choices), "ordered": True}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"batch": batch(1, 2, 4, 8)}, "batch.choices: was [1,2,4], is now [1,2,4,8]"),
        ({"batch": batch(1, 2)}, "batch.choices: was [1,2,4], is now [1,2]"),
        ({"batch": batch(4, 2, 1)}, "batch.choices: was [1,2,4], is now [4,2,1]"),
        ({"size": batch(1, 2, 4)}, "size: was absent, is now {"),
    ],
    ids=["added", "removed", "reordered", "renamed"],
)  # fmt: skip
def test_it_is_refused_with_both_values_and_what_to_type(
    program: Program,
    capsys: pytest.CaptureFixture[str],
    parameters: dict[str, Any],
    said: str,
) -> None:
    assert program.run("search.max_trials=3") == 0
    before = contents(program.study)
    program.model["space"]["parameters"] = {**parameters, "chunk": CHUNK}
    (name,) = parameters
    command = MODEL["trainer"]["command"].replace("{batch}", f"{{{name}}}")
    program.model["trainer"]["command"] = command
    capsys.readouterr()
    assert program.run("search.max_trials=4") == 2
    refused = capsys.readouterr().err
    assert f"space.parameters.{said}" in refused
    assert "study.name=NAME study.take_over=toy" in refused
    assert "Traceback" not in refused
    assert contents(program.study) == before


def test_what_it_says_to_type_carries_the_results_over(program: Program) -> None:
    assert program.run("search.max_trials=3") == 0
    program.model["space"]["parameters"]["batch"] = batch(1, 2, 4, 8)
    assert program.run("study.name=new", "study.take_over=toy", "search.max_trials=1") == 0
    lines = (program.folder / "studies" / "new" / "trials.jsonl").read_text().splitlines()
    assert len(lines) == 4
    assert sum('"taken_from"' in line for line in lines) == 3


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
