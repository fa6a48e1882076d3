"""`autotune check`: what a sweep would search, without starting a trial."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotune.cli.arguments import Invocation
from autotune.cli.wiring import Problem, check_devices, compose_problem, look_ahead
from autotune.config.quantities import format_bytes
from autotune.errors import ExitCode
from autotune.predict.settings import understood
from autotune.search.guided.belief import Belief
from autotune.search.setting import check_setting
from autotune.space.point import plain

# So many points are predicted, any of them, which takes a tenth of a second.
_PREDICTED = 2000
_NEEDED = ("hidden_size", "num_layers", "seq_length")


def check(invocation: Invocation) -> int:
    """Composes, builds the space, tries the sampler, predicts memory, looks at the devices.

    Raises UserError, for devices that are not there when all else was said.
    """
    problem = compose_problem(invocation.overrides, invocation.config_dir)
    _check_search(problem)
    console = Console(soft_wrap=True, highlight=False)
    config, space = problem.config, problem.space
    study = escape(f"study {config.study.name} in {config.study_dir}")
    console.print(f"[bold]{escape(config.model.name)}[/]: {study}")
    console.print(f"[bold]{space.size_text}[/] legal points of {space.combinations:,} combinations")
    console.print(_parameters(problem))
    if any(not exclusion.rule.is_trainers for exclusion in space.exclusions):
        console.print(_rules(problem))
    for line in _trainers_rules(problem):
        console.print(line, markup=False)
    console.print(f"baseline: {space.baseline}", markup=False)
    console.print(f"memory limit: {format_bytes(problem.memory_limit_bytes)} a device")
    for line in _memory(problem):
        console.print(line, markup=False)
    plan = problem.measurement
    console.print(
        f"a trial: {plan.warmup_steps} steps that warm up and measure memory, then at most "
        f"{plan.measured_steps} scored steps over a data window of {plan.window_steps}"
    )
    for warning in look_ahead(problem, is_set_up=False):
        console.print(f"[yellow]note:[/] {escape(warning)}")
    # Last: on a login node, which has no devices, all else is still worth knowing.
    console.print(check_devices(config))
    return ExitCode.DONE


def _check_search(problem: Problem) -> None:
    """Raises UserError for a sampler or a seed that the sweep would refuse."""
    search = problem.config.search
    check_setting(search.sampler, search.seed)
    if not isinstance(search.sampler, Mapping):
        return
    # Optuna takes a second to import: only for a sampler that cannot be judged without it.
    from autotune.search.encoding import Encoding
    from autotune.search.factory import make_sampler

    make_sampler(search.sampler, Encoding(problem.space), search.seed, problem.knowledge)


def _parameters(problem: Problem) -> Table:
    table = Table("parameter", "choices", "when", box=None, header_style="bold")
    for parameter in problem.space.parameters:
        choices = ", ".join(plain(choice) for choice in parameter.choices)
        when = parameter.when.text if parameter.when else ""
        table.add_row(escape(parameter.name), escape(choices), escape(when))
    return table


def _rules(problem: Problem) -> Table:
    table = Table(box=None, header_style="bold")
    for name in ("excludes", "excludes alone", "rule", "reason"):
        table.add_column(name, overflow="fold")  # whoever reads a rule needs all of it
    for exclusion in problem.space.exclusions:
        if exclusion.rule.is_trainers:
            continue
        table.add_row(
            exclusion.excluded_text,
            exclusion.alone_text,
            escape(exclusion.rule.expression.text),
            escape(exclusion.rule.reason),
        )
    return table


def _trainers_rules(problem: Problem) -> list[str]:
    """What the training program itself would refuse or get wrong."""
    trainers = [e for e in problem.space.exclusions if e.rule.is_trainers]
    if not trainers:
        return []
    telling = [e for e in trainers if e.excluded]
    return [
        f"{problem.trainer.name} has {len(trainers)} rules of its own; "
        f"{len(trainers) - len(telling)} of them exclude nothing here",
        *(f"  excludes {e.excluded_text}: {e.rule.reason}" for e in telling),
    ]


def _memory(problem: Problem) -> list[str]:
    """What is predicted of memory, and what is not known of it."""
    belief = problem.knowledge.belief
    if belief is None:
        return [f"memory is not predicted: {_unknown(problem)}"]
    space, limit = problem.space, problem.memory_limit_bytes
    codes = space.codes
    if len(codes) > _PREDICTED:
        codes = codes[np.random.default_rng(0).choice(len(codes), _PREDICTED, replace=False)]
    fitting = int((_peaks(belief, codes) <= limit).sum())
    is_all = space.is_listed and len(codes) == len(space.codes)
    share = f"{fitting:,} of {len(codes):,}" if is_all else f"about {fitting / len(codes):.0%} of"
    baseline = space.encode(space.baseline)
    assert baseline is not None, "the baseline is a legal point"
    peak = format_bytes(float(_peaks(belief, baseline[None])[0]))
    lines = [
        f"memory, predicted from the model's figures alone (no run has corrected it yet): the "
        f"baseline's peak is {peak}; {share} legal points fit"
    ]
    left_out = [p.name for p in space.parameters if len(p.choices) > 1 and understood(p) is None]
    if left_out:
        lines.append(f"not part of the prediction, left to the runs: {', '.join(left_out)}")
    return lines


def _peaks(belief: Belief, codes: np.ndarray) -> np.ndarray:
    """Predicted bytes (points,), before any run."""
    logs = belief.log_bytes(codes[:0], np.zeros(0), codes)
    return np.full(len(codes), np.nan) if logs is None else np.exp(logs)


def _unknown(problem: Problem) -> str:
    dims = problem.config.model.dims
    missing = [f"model.dims.{name}" for name in _NEEDED if dims.get(name) is None]
    if missing:
        return f"{', '.join(missing)} not given"
    return "the cost model knows none of the parameters"
