"""Choices and parameters with names that a table, a terminal or a shell trips over."""

from __future__ import annotations

import csv

import pytest

from autotune.cli.main import main

from .conftest import Program, ran

STRANGE = [
    "",
    " ",
    "two\nlines",
    "a\tb",
    "a|b",
    "a,b",
    '"q"',
    "'",
    "\\",
    "[red]x[/red]",
    "[/]",
    "`x`",
    "=1+1",
    "{x}",
    "%s",
    "null",
    "nan",
    "0",
    "é",
    "🙂",
    "\x1b[31m",
    "x" * 3000,
]


def test_choices_of_any_text_are_tried_told_and_tabled(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    program.model["space"]["parameters"]["chunk"] = {"choices": STRANGE}
    program.behave = lambda values, request: ran(1.0)
    assert program.run("search.max_trials=100", "measure.race=false") == 0
    assert {trial["parameters"]["chunk"] for trial in program.trials} == set(STRANGE)
    table = program.study / "report" / "trials.csv"
    with table.open(encoding="utf-8", newline="") as file:
        assert {row["chunk"] for row in csv.DictReader(file)} == set(STRANGE)
    lines = program.report.split("## All trials")[1].split("\n")
    rows = [line for line in lines if "| ok |" in line]
    assert len(rows) == len(STRANGE) * 3
    assert all(row.startswith("| ") and row.endswith(" |") for row in rows)
    assert program.run(verb="status") == 0
    assert program.run(verb="report") == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("choice", ["", "two\nlines", "[/]", "a|b", " lead", "🙂"])
def test_a_winner_of_any_text_is_exported(program: Program, choice: str) -> None:
    choices = ["base", choice]
    program.model["space"]["parameters"] = {
        "batch": {"choices": [1]},
        "chunk": {"choices": choices},
    }
    program.behave = lambda values, request: ran(1.0 if values["chunk"] == "base" else 0.1)
    assert program.run() == 0
    assert program.best["parameters"]["chunk"] == choice
    command = program.best["trainer"]["config"]["command"]
    assert command[command.index("--chunk") + 1] == choice


@pytest.mark.parametrize(
    ("choices", "rule", "shown"),
    [
        (["a", "[/]"], "batch > 0", "[/]"),
        (["a", "[red]b"], "batch > 0", "[red]b"),
        (["a", "b"], "batch in [model.small, 2, 4]", "batch in [model.small, 2, 4]"),
    ],
)
def test_check_shows_texts_as_they_are(
    program: Program, capsys: pytest.CaptureFixture[str], choices: list[str], rule: str, shown: str
) -> None:
    program.model["model"]["dims"] = {"small": 1}
    program.model["space"]["parameters"]["chunk"] = {"choices": choices}
    program.model["space"]["constraints"] = [{"rule": rule, "reason": "why"}]
    assert program.run(verb="check") == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("name", ["调", "_x", "__class__", "parameters", "x" * 200])
def test_a_parameter_of_any_name_is_tabled_and_replayed(program: Program, name: str) -> None:
    with_parameter(program, name)
    assert program.run() == 0
    table = program.study / "report" / "trials.csv"
    words = [f"replay.table={table}", "replay.samplers=[random]", "replay.seeds=2"]
    assert main(["replay", *words, f"replay.out={program.folder / 'out'}"]) == 0


@pytest.mark.parametrize("name", ["trial", "status", "reason", "attempt", "cost_s"])
def test_a_parameter_named_as_a_column_of_the_table(program: Program, name: str) -> None:
    """Refused beforehand, or tabled in a way that can be read."""
    with_parameter(program, name)
    if program.run() == 2:
        return
    with (program.study / "report" / "trials.csv").open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    assert len(header) == len(set(header))


def with_parameter(program: Program, name: str) -> None:
    choices = {"choices": [1, 2]}
    program.model["space"]["parameters"] = {"batch": choices, name: choices}
    command = f"train --batch {{batch}} --x {{{name}}} --steps {{steps}}"
    program.model["trainer"]["command"] = command
