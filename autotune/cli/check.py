"""`autotune check`: what a sweep would search, without starting a trial."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotune.cli.arguments import Invocation
from autotune.cli.wiring import Problem, check_devices, compose_problem
from autotune.config.quantities import format_bytes
from autotune.errors import ExitCode
from autotune.space.point import plain


def check(invocation: Invocation) -> int:
    """Composes, builds the space, looks at the devices. Raises UserError."""
    problem = compose_problem(invocation.overrides, invocation.config_dir)
    devices = check_devices(problem.config)
    console = Console(soft_wrap=True)
    config, space = problem.config, problem.space
    study = escape(f"study {config.study.name} in {config.study_dir}")
    console.print(f"[bold]{config.model.name}[/]: {study}")
    console.print(f"[bold]{len(space.points)}[/] legal points of {space.combinations} combinations")
    console.print(_parameters(problem))
    console.print(_rules(problem))
    console.print(f"baseline: {space.baseline}", highlight=False)
    console.print(f"memory limit: {format_bytes(problem.memory_limit_bytes)} a device")
    console.print(devices)
    plan = problem.measurement
    console.print(
        f"a trial: {plan.warmup_steps} steps that warm up and measure memory, then at most "
        f"{plan.measured_steps} scored steps over a data window of {plan.window_steps}"
    )
    return ExitCode.DONE


def _parameters(problem: Problem) -> Table:
    table = Table("parameter", "choices", "when", box=None, header_style="bold")
    for parameter in problem.space.parameters:
        choices = ", ".join(plain(choice) for choice in parameter.choices)
        table.add_row(parameter.name, choices, parameter.when.text if parameter.when else "")
    return table


def _rules(problem: Problem) -> Table:
    table = Table("excludes", "only this rule", "rule", "reason", box=None, header_style="bold")
    for exclusion in problem.space.exclusions:
        table.add_row(
            str(exclusion.excluded),
            str(exclusion.alone),
            exclusion.rule.expression.text,
            exclusion.rule.reason,
        )
    return table
