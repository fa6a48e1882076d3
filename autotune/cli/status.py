"""`autotune status`: the state of a study, read from its folder only."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotune.cli.arguments import Invocation
from autotune.cli.studies import KeptStudy, find_study, read_study
from autotune.cli.view import describe_trial, versus_baseline
from autotune.errors import ExitCode
from autotune.measure.read import steps_done
from autotune.report.gate import GateSummary
from autotune.study.best import count_by_status, spent_s
from autotune.study.lock import is_locked
from autotune.sweep.progress import finished_progress

_LATEST = 5


def status(invocation: Invocation) -> int:
    """Shows the study. Reads only, never the database. Raises UserError."""
    study = read_study(find_study(invocation))
    console = Console(soft_wrap=True, highlight=False)
    running = is_locked(study.paths.lock)
    config = study.problem.config
    where = escape(f"{config.study.name} ({config.model.name}) in {study.paths.root}")
    console.print(f"[bold]study[/] {where}")
    console.print("a sweep is running" if running else "no sweep is running")
    progress = finished_progress(study.results, config.search.max_trials)
    tried = len({record.parameters for record in study.records if record.was_launched})
    console.print(
        f"{progress.finished} of {progress.max_trials} trials finished; "
        f"{tried} of {study.problem.space.size_text} legal points tried"
    )
    if study.records:
        console.print(_counts(study))
    if gate := GateSummary.of(study.records).line:
        console.print(gate)
    if progress.best is not None:
        console.print(f"the best{versus_baseline(progress)}:")
        console.print(describe_trial(progress.best, progress.baseline_point))
    if running:
        _print_running(console, study)
    if study.records:
        console.print("latest:")
    for record in study.records[-_LATEST:]:
        console.print(describe_trial(record, progress.baseline_point))
    return ExitCode.DONE


def _counts(study: KeptStudy) -> Table:
    table = Table("status", "trials", "device time", box=None, header_style="bold")
    for kind, count in count_by_status(study.records).items():
        table.add_row(kind.value, str(count), f"{spent_s(study.records, kind):.0f} s")
    return table


def _print_running(console: Console, study: KeptStudy) -> None:
    """The newest folders without a result belong to what runs."""
    for name, parent, done in (
        ("trial", study.paths.trials, {r.trial for r in study.records if r.was_launched}),
        ("repeat", study.paths.repeats, {repeat.number for repeat in study.repeats}),
    ):
        newest = max(done, default=-1)
        for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
            if folder.name.isdigit() and int(folder.name) > newest:
                steps = steps_done(folder, study.problem.voices)
                most = study.problem.measurement.total_steps
                at = f"step {steps} of at most {most}" if steps <= most else "profiled"
                console.print(f"{name} {int(folder.name)} runs: {at}")
