"""What `check` says of a space and of its memory, without a trial."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from autotune.cli.check import _memory, _rules
from autotune.cli.main import main
from autotune.cli.wiring import Problem, compose_problem
from autotune.config.quantities import format_bytes
from autotune.predict.belief import CostBelief
from autotune.predict.cost_model import CostModel
from autotune.search.guided.belief import Knowledge
from autotune.space.definition import Rule, SpaceDefinition
from autotune.space.exclusion import Exclusion
from autotune.space.legal import LegalSpace

DIMS = {"hidden_size": 64, "num_layers": 4, "seq_length": 128, "num_heads": 4}


def lines_of(parameters: dict[str, Any]) -> list[str]:
    """What is said of the memory of a space of one's own."""
    facts = {"model": DIMS, "cluster": {"world_size": 4}}
    space = LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, facts))
    model = CostModel.of(space, facts)
    limit = 100 << 20
    problem = SimpleNamespace(
        space=space,
        memory_limit_bytes=limit,
        knowledge=Knowledge(limit, None if model is None else CostBelief(model)),
        config=SimpleNamespace(model=SimpleNamespace(dims=DIMS)),
    )
    return _memory(cast(Problem, problem))


def test_the_prediction_is_that_of_the_terms_and_is_called_uncalibrated(capsys) -> None:
    problem = compose_problem(("model=tiny_vlm",), None)
    model = CostModel.of(problem.space, problem.config.facts)
    assert model is not None
    peaks = model.memory_terms(problem.space.codes).sum(axis=1)
    row = problem.space.index_of(problem.space.baseline)
    fitting = int((peaks <= problem.memory_limit_bytes).sum())
    assert 0 < fitting < len(peaks)
    assert main(["check", "model=tiny_vlm"]) == 0
    printed = capsys.readouterr().out
    assert "no run has corrected it" in printed
    assert f"the baseline's peak is {format_bytes(peaks[row])}" in printed
    assert f"{fitting} of {len(peaks)} legal points fit" in printed


def test_what_is_not_known_is_named_in_one_line(capsys) -> None:
    unknown = ("~model.dims.num_layers", "~model.dims.seq_length")
    assert main(["check", "model=tiny_vlm", *unknown]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "not predicted" in line]
    assert line == (
        "memory is not predicted: model.dims.num_layers, model.dims.seq_length not given"
    )


def test_a_space_that_the_cost_model_does_not_know_is_said() -> None:
    assert lines_of({"colour": {"choices": ["red", "green"]}}) == [
        "memory is not predicted: the cost model knows none of the parameters"
    ]


def test_what_is_left_to_the_runs_is_said() -> None:
    parameters = {"micro_batch_size": {"choices": [1, 2]}, "colour": {"choices": ["red", "green"]}}
    assert lines_of(parameters)[1] == "not part of the prediction, left to the runs: colour"


def test_a_figure_that_cannot_be_is_named(capsys) -> None:
    assert main(["check", "model=tiny_dit", "model.dims.hidden_size=-4"]) == 2
    assert "model.dims.hidden_size=-4 is not" in capsys.readouterr().err


def test_a_space_that_is_too_large_to_list_is_estimated() -> None:
    sizes = {"micro_batch_size": {"choices": [1, 2, 4, 8], "ordered": True}}
    others = {f"p{n}": {"choices": list(range(10))} for n in range(8)}
    assert "; about " in lines_of({**sizes, **others})[0]


def test_a_count_that_takes_too_long_is_a_dash() -> None:
    rule = Rule.parse(0, {"rule": "a > 0", "reason": "why"})
    exclusions = (
        Exclusion(rule, 7, None),
        Exclusion(rule, 2_000_000, 5, estimated=True),
        Exclusion(rule, 2_000_000, 2_000_000, estimated=True, alone_estimated=True),
    )
    problem = cast(Problem, SimpleNamespace(space=SimpleNamespace(exclusions=exclusions)))
    console = Console(width=100)
    with console.capture() as captured:
        console.print(_rules(problem))
    first, second, third = captured.get().splitlines()[1:4]
    assert first.split()[:2] == ["7", "-"]
    assert second.split()[:3] == ["about", "2.0e+06", "5"]
    assert third.split()[:4] == ["about", "2.0e+06", "about", "2.0e+06"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search.sampler=guidde"], "search.sampler='guidde' is neither a name.*'guided'"),
        (["search.sampler={_target_: optuna.samplers.Nope}"], "cannot be imported"),
        (
            ["search.sampler={_target_: optuna.samplers.TPESampler, n_startup_trials: abc}"],
            "optuna.samplers.TPESampler cannot propose a point",
        ),
        (["search.seed=-1"], "search.seed=-1 must be at least 0"),
    ],
)
def test_a_sampler_that_the_sweep_would_refuse_is_refused(
    words: list[str], message: str, capsys
) -> None:
    assert main(["check", "model=tiny_dit", *words]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_sampler_that_works_passes(capsys) -> None:
    words = ["search.sampler={_target_: optuna.samplers.QMCSampler}"]
    assert main(["check", "model=tiny_dit", *words]) == 0
    assert "legal points" in capsys.readouterr().out


def test_optuna_is_waited_for_only_where_it_is_needed() -> None:
    """It takes longer to import than all the rest of `check`."""
    code = (
        "import sys; from autotune.cli.main import main; main(['check', 'model=tiny_dit']);"
        "sys.exit('optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("words", "is_on"),
    [
        ((), True),
        (("search.sampler=exhaustive",), False),
        (("search.sampler=tpe",), True),
        (("memory.gate=false",), False),
        (("memory.gate=true", "search.sampler=exhaustive"), True),
    ],
)
def test_the_gate_is_on_unless_a_whole_table_is_recorded(words: tuple[str, ...], is_on) -> None:
    assert compose_problem(("model=tiny_dit", *words), None).has_memory_gate is is_on


def test_what_is_known_of_the_space_goes_to_the_search() -> None:
    problem = compose_problem(("model=tiny_dit", "memory.limit=50MiB"), None)
    assert problem.config.search.sampler == "guided"
    assert problem.knowledge.limit_bytes == 50 << 20
    assert problem.knowledge.belief is not None


MODEL = """
# @package _global_
defaults: [override /trainer: command]
model: {name: mine}
trainer: {command: "sh {x} {steps}", memory: none}
space: {parameters: {x: {choices: [1, 2]}}}
"""


@pytest.mark.parametrize("verb", ["check", "sweep"])
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trainer.cwd=/nope", "trainer.cwd=/nope is no folder"),
        ("trainer.command=/nope/prog {x} {steps}", "trainer.command starts /nope/prog"),
        ("trainer.command=nopeprog {x} {steps}", "trainer.command starts nopeprog"),
        ("trainer.python=/nope/python", "trainer.python=/nope/python does not run"),
        ("trainer.python=/etc/passwd", "trainer.python=/etc/passwd does not run"),
        ("trainer.setup=[/nope.sh]", "trainer.setup names /nope.sh"),
        ("trainer.env.BAR=null", "trainer.env.BAR=null must be"),
    ],
)
def test_a_program_that_is_not_there_is_refused_before_anything_starts(
    verb: str, word: str, message: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(config: object) -> None:
        raise AssertionError("Ray would start")

    monkeypatch.setattr("autotune.cli.sweep.make_launcher", start)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text(MODEL)
    place = f"study.dir={tmp_path / 'study'}"
    assert main([verb, "--config-dir", str(tmp_path), "model=mine", place, word]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "study").exists()
